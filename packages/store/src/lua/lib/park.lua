-- Parks deliveries: collects them by lane, then adds all of a lane with one command.
--@include count-parked

-- The collected deliveries, by key of the lane: {KEY_RELEASE_…, subscription, created, id, created, id, …}.
local toPark = {}
local function addToLanes()
  for i = 1, #toPark do
    local lane = toPark[i]
    call('ZADD', lane, unpack(toPark[lane], 3))
    call('SADD', toPark[lane][1], toPark[lane][2])
    toPark[lane], toPark[i], parkedCounts[lane] = nil, nil, nil
  end
end

local function addToLane(lane, index, sub, created, id)
  local entries = toPark[lane]
  if not entries then
    entries = {index, sub}
    toPark[lane] = entries
    toPark[#toPark + 1] = lane
  end
  entries[#entries + 1] = created
  entries[#entries + 1] = id
end

-- Whether an overdue lane has deliveries, by its key; nil if that is not read yet.
local hasOverdue = {}

-- Collects a delivery for the next addToLanes, so that its job (of this `generation`) can be removed. An overdue
-- attempt goes into the overdue lane, which is released at a fixed rate, because many are overdue at once after an
-- outage of Redis, of the workers or of their network.
-- A retry is overdue if it has been due for longer than OVERDUE_AFTER_MS. While the overdue lane is not empty, that is
-- only OVERDUE_BEHIND_OTHERS_MS: otherwise retries that were released while workers were busy would be sent all at
-- once. Any attempt that was due before `dueBeforeMs`, the end of an outage, is overdue. A first attempt (without field
-- x) is due when its delivery is created.
-- Returns 'parked', 'overdue', 'not_overdue' (nothing changes because of `onlyOverdue`), or 'superseded' (the delivery
-- has another job, or has ended). Throws if the record has no time of creation: it would have no place in a lane.
local function park(id, generation, sub, st, newest, created, retryMs, nowMs, dueBeforeMs, onlyOverdue)
  if not st or st == SUCCEEDED or st == FAILED or st == HELD or (newest or '0') ~= generation then return 'superseded' end
  if not string.find(created or '', '^%d+$') then error('ERR The record of ' .. id .. ' has no valid time of creation', 0) end
  local lane = KEY_OVERDUE .. sub
  if hasOverdue[lane] == nil then hasOverdue[lane] = call('EXISTS', lane) == 1 end
  retryMs = tonumber(retryMs)
  local afterMs = hasOverdue[lane] and OVERDUE_BEHIND_OTHERS_MS or OVERDUE_AFTER_MS
  if retryMs and nowMs - retryMs > afterMs or (retryMs or tonumber(created)) < dueBeforeMs then
    hasOverdue[lane] = true
    addToLane(lane, KEY_RELEASE_OVERDUE, sub, created, id)
    return 'overdue'
  end
  if onlyOverdue then return 'not_overdue' end
  addToLane(KEY_PARKED .. sub, KEY_RELEASE_PARKED, sub, created, id)
  return 'parked'
end
