-- Stores the decision to cancel all bulk replays of a batch; `cancellation` says when and by whom. It is one script so
-- that of two decisions the first one counts, and maintenance is told of the batch. Returns 'cancelled' or 'gone'.
local key = KEY_REPLAY_BATCH .. id
if call('EXISTS', key) == 0 then return 'gone' end
call('HSETNX', key, 'cancellation', cancellation)
if call('SADD', KEY_ACTIVE_BATCHES, id) == 1 then
  -- The work on it had ended, so all were started. Earlier versions do not say so when it ends.
  call('HSET', key, 'started', 1)
end
return 'cancelled'
