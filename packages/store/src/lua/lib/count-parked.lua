-- How many deliveries are parked at an address. What a script has read is kept by lane; whoever changes a lane changes it too.
local parkedCounts = {}
local function countParked(sub)
  local lane = KEY_PARKED .. sub
  local count = parkedCounts[lane] or call('ZCARD', lane)
  parkedCounts[lane] = count
  return count
end
