-- Ends the work on a batch, unless it was cancelled after the caller read it: then the cancellation is still to do.
if (call('HGET', KEY_REPLAY_BATCH .. id, 'cancellation') or '') ~= cancellation then return end
call('SREM', KEY_REPLAY_BATCHES_ACTIVE, id)
