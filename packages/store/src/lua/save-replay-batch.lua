-- Accepts the bulk replays of several addresses at once: from now on maintenance starts those that the console does not start.
local key = KEY_REPLAY_BATCH .. id
call('HSET', key, 'batch', text)
call('PEXPIREAT', key, expiresAtMs)
call('SADD', KEY_REPLAY_BATCHES_ACTIVE, id)
