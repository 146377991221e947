-- Parks deliveries, those of a lane with one command.
--@include count-parked

-- Deliveries that are to be parked, by lane: {KEY_RELEASE_…, subscription, created, id, created, id, …}. Those of a
-- lane are added together, by addToLanes.
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

-- Whether an overdue lane has deliveries, by its key.
local hasOverdue = {}

-- Parks a delivery with the next addToLanes, so that its job can go. If the attempt is overdue, the delivery goes into
-- the overdue lane, which is released at a fixed rate: many are overdue at once when Redis, the workers or their
-- network were away. A retry is overdue if it has been due for longer than OVERDUE_AFTER_MS; so is whatever was due
-- before `dueBeforeMs`, the end of an outage. A first attempt (it has no x) is due when its delivery is created. While
-- the lane is not empty, a retry is overdue after OVERDUE_BEHIND_OTHERS_MS: otherwise those released while workers were
-- busy would all be sent at once. Returns 'parked', 'overdue', 'not_overdue' if it was left because of `onlyOverdue`,
-- or 'superseded' if the delivery has another job or ended. `generation`: that of the job.
local function park(id, generation, sub, st, newest, created, retryMs, nowMs, dueBeforeMs, onlyOverdue)
  if not st or st == SUCCEEDED or st == FAILED or st == HELD or (newest or '0') ~= generation then return 'superseded' end
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
