-- Stores a batch of bulk replays (`text` is JSON). From then on all of them are replayed: maintenance starts those that
-- the console does not get to. It is one script so that no stored batch is unknown to maintenance. Returns nothing.
local key = KEY_REPLAY_BATCH .. id
call('HSET', key, 'batch', text)
call('PEXPIREAT', key, expiresAtMs)
call('SADD', KEY_ACTIVE_BATCHES, id)
