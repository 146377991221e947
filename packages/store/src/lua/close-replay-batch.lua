-- Ends the work on a batch, unless it was cancelled after its caller read it: then that is still to do.
if (call('HGET', KEY_REPLAY_BATCH .. id, 'cancellation') or '') ~= cancellation then return end
call('SREM', KEY_REPLAY_BATCHES_ACTIVE, id)
