-- Ends the work on a batch if `cancellation` is still what the caller has read. It is one script so that a cancellation
-- in between is carried out. Returns nothing.
if (call('HGET', KEY_REPLAY_BATCH .. id, 'cancellation') or '') ~= cancellation then return end
call('SREM', KEY_REPLAY_BATCHES_ACTIVE, id)
