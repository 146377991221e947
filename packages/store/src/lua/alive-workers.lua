-- Returns the workers with a heartbeat in the last `withinMs` by the time of Redis: {state, ms since the heartbeat, …}.
-- After its clock was set back, those of before are ahead of it: whoever is alive has sent another one since.
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
