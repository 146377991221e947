-- Returns the workers whose heartbeat is at most `withinMs` old, as {state, ms since the heartbeat, …}. It is a script
-- so that ages are by the clock of Redis. If that clock was set back, heartbeats from before are in its future; they
-- are left out, because a live worker has sent another one since.
--@include redis-ms

local nowMs = redisMs()
local seen = call('ZRANGEBYSCORE', KEY_WORKERS_SEEN, nowMs - withinMs, nowMs, 'WITHSCORES')
local alive = {}
for i = 1, #seen, 2 do
  local state = call('HGET', KEY_WORKERS, seen[i])
  if state then
    alive[#alive + 1] = state
    alive[#alive + 1] = nowMs - seen[i + 1]
  end
end
return alive
