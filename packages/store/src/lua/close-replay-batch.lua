-- Ends the work on a batch if `cancellation` is still what the caller has read. It is one script so that a cancellation
-- in between is carried out. Returns nothing.
local key = KEY_REPLAY_BATCH .. id
if (call('HGET', key, 'cancellation') or '') ~= cancellation then return end
call('SREM', KEY_ACTIVE_BATCHES, id)
-- From now on, one that is missing has expired.
if call('EXISTS', key) == 1 then call('HSET', key, 'started', 1) end
