-- Stores a worker's heartbeat, and removes workers whose last one is older than `forgetAfterMs`. It is a script so that
-- all heartbeats are by the clock of Redis. Returns nothing.
--@include redis-ms

local nowMs = redisMs()
call('HSET', KEY_WORKERS, id, state)
call('ZADD', KEY_WORKERS_SEEN, nowMs, id)
for _, dead in ipairs(call('ZRANGEBYSCORE', KEY_WORKERS_SEEN, '-inf', nowMs - forgetAfterMs)) do
  call('HDEL', KEY_WORKERS, dead)
  call('ZREM', KEY_WORKERS_SEEN, dead)
end
