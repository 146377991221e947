-- Returns how many deliveries are parked at an address. Counts once in each run of a script, so code that changes a
-- parked lane must update or clear its entry in parkedCounts.
local parkedCounts = {}
local function countParked(sub)
  local lane = KEY_PARKED .. sub
  local count = parkedCounts[lane] or call('ZCARD', lane)
  parkedCounts[lane] = count
  return count
end
