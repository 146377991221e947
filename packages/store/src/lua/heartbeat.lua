-- Stores a worker's heartbeat, and removes workers whose last one is older than `forgetBeforeMs`.
call('HSET', KEY_WORKERS, id, state)
call('ZADD', KEY_WORKERS_SEEN, nowMs, id)
for _, dead in ipairs(call('ZRANGEBYSCORE', KEY_WORKERS_SEEN, '-inf', forgetBeforeMs)) do
  call('HDEL', KEY_WORKERS, dead)
  call('ZREM', KEY_WORKERS_SEEN, dead)
end
