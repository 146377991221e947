-- Decides that all bulk replays of a batch are cancelled; `cancellation` says when and by whom. The first decision
-- counts. Returns 'cancelled' or 'gone'.
local key = KEY_REPLAY_BATCH .. id
if call('EXISTS', key) == 0 then return 'gone' end
if call('HSETNX', key, 'cancellation', cancellation) == 1 then call('SADD', KEY_REPLAY_BATCHES_ACTIVE, id) end
return 'cancelled'
