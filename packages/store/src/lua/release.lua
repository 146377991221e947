-- Puts up to `limit` deliveries of each lane into the queue, oldest first, each with a new generation and its job. It
-- is one script so that each delivery has either a place in a lane or a job. `home` is the key prefix of the lane's
-- partition.
-- Releases from the held lane only while the address is active. Deliveries in another lane of an address that is not
-- active move to the held lane, except its trial and test deliveries (lib/may-pass.lua). An overdue delivery is due
-- now, so its next attempt is not overdue again, and field d keeps when its retry was due first, with the time that is
-- in x now: a process of an older release changes x alone. If a slow worker has recorded an attempt meanwhile, the
-- retry keeps its later time.
-- Returns for each lane {delivery, generation or HELD_NOW, event, attempts recorded, …}, or the text of an error. An
-- error in one lane does not affect the others.
--@include delivery-key
--@include status
--@include add-job
--@include release-held
--@include put-on-hold
--@include may-pass
--@include error-text

-- `mayHold`: how many more deliveries this script may hold, whatever the limits of the lanes. `hasAdded`: whether it
-- has added jobs to the partition of the present lane.
local mayHold, hasAdded = HOLD_CHUNK, false
local function release(lane, sub, limit)
  local laneKey, indexKey = KEY_PARKED .. sub, KEY_RELEASE_PARKED
  if lane == LANE_OVERDUE then laneKey, indexKey = KEY_OVERDUE .. sub, KEY_RELEASE_OVERDUE end
  if lane == LANE_HELD then laneKey, indexKey = KEY_HELD .. sub, KEY_RELEASE_HELD end
  local address = call('HMGET', KEY_SUBSCRIPTION .. sub, 'status', 'trial')
  local status = address[1]
  local holdsOthers = lane ~= LANE_HELD and status and status ~= ACTIVE and status ~= DELETED
  if lane == LANE_HELD and status ~= ACTIVE then
    call('SREM', indexKey, sub)
    return {}
  end
  local released = {}
  for _, id in ipairs(call('ZRANGE', laneKey, 0, (holdsOthers and math.max(limit, mayHold) or limit) - 1)) do
    if holdsOthers then mayHold = mayHold - 1 end
    local key = deliveryKey(id)
    local found = call('HMGET', key, 'st', 'n', 'c', 'e', 'x', 'k', 'd')
    local st, attempts, created = found[1], found[2], found[3]
    if st and not isFinished(st) then
      local hold = holdsOthers and not mayPass(status, address[2], id, found[6])
      local event = eventOf(id, found[4])
      released[#released + 1] = id
      if hold then
        putOnHold(id, sub, created, st)
        released[#released + 1] = HELD_NOW
      else
        local isRetry = attempts ~= '0'
        if lane == LANE_OVERDUE and (tonumber(found[5]) or 0) < nowMs then
          local dueAt = found[5]
          local firstDueAt = found[7] and string.match(found[7], '^(%d+):' .. (dueAt or '') .. '$') or dueAt
          if firstDueAt then call('HSET', key, 'd', firstDueAt .. ':' .. nowMs) end
          call('HSET', key, 'x', nowMs)
        end
        local wasHeld = st == HELD
        if wasHeld then releaseHeld(id, created, isRetry, nowMs) end
        local waitsBehind = isRetry or wasHeld or lane == LANE_OVERDUE
        local jobId, generation = makeJob(id, sub, event, waitsBehind, nowMs)
        enqueue(jobId, waitsBehind and RETRY_PRIORITY or 0)
        released[#released + 1] = generation
        hasAdded = true
      end
      released[#released + 1] = event
      released[#released + 1] = attempts
    end
    call('ZREM', laneKey, id)
  end
  if call('EXISTS', laneKey) == 0 then call('SREM', indexKey, sub) end
  return released
end

local reply = {}
for home, lane, subscriptionId, limit in lanes do
  -- Everything below uses the keys of this partition.
  prefix = home
  hasAdded = false
  local isDone, result = pcall(release, lane, subscriptionId, tonumber(limit))
  if hasAdded then wakeWorker() end
  reply[#reply + 1] = isDone and result or errorText(result)
end
return reply
