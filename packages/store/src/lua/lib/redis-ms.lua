-- Returns the time of Redis in ms, for times that processes with different clocks compare.
local function redisMs()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
