-- Takes parked deliveries of an address in place of jobs of the queue.
--@include next-job
--@include count-parked
--@include delivery-key
--@include add-job
--@include address

-- Writes a delivery's new generation into the reply of readDelivery. In a joint record the name may then be there
-- twice: the worker uses the last one.
local function setGeneration(found, isWhole, generation)
  if isWhole then
    found[#found + 1] = 'g'
    found[#found + 1] = generation
  else
    found[2] = generation
  end
end

-- Takes up to `limit` parked deliveries of an active address, oldest first: each gets a new generation and a job that
-- is active at once. Returns a list of what jobReply returns. Takes none if an operator limits how many jobs may be
-- active, because other addresses would never get a place.
local function takeParked(sub, limit, token, lockMs, nowMs, known, spansPartitions)
  local taken, lane, tries = {}, KEY_PARKED .. sub, MAX_PARKED_AT_ONCE
  if readAddress(sub).status ~= ACTIVE or not mayTake(nowMs) or queues[prefix].maxActive then return taken end
  if queues[prefix].hasDue then wakeNext() end
  local parked = countParked(sub)
  while #taken < limit and parked > 0 and tries > 0 do
    local popped = call('ZPOPMIN', lane, limit - #taken)
    if #popped == 0 then parked = 0 end
    for i = 1, #popped, 2 do
      local deliveryId = popped[i]
      local isWhole = isJoint(deliveryId)
      local isRead, found, _, st = pcall(readDelivery, deliveryId, isWhole)
      -- Otherwise it has ended while it was parked, or its record can't be read or changed: then rescue.lua reports it.
      if isRead and (st == PENDING or st == WAITING_FOR_RETRY) then
        local event = eventOf(deliveryId, not isWhole and found[4])
        local isMade, id, generation = pcall(makeJob, deliveryId, sub, event, st == WAITING_FOR_RETRY, nowMs)
        if isMade then
          -- Comes before any command that may fail: no process finds a job that exists but is in no list.
          call('LPUSH', KEY_QUEUE .. 'active', id)
          lock(id, token, lockMs)
          setGeneration(found, isWhole, generation)
          taken[#taken + 1] = tryToRead(jobReply, id, sub, found, isWhole, known, spansPartitions)
        end
      elseif isRead and st == HELD then
        -- A held delivery is in the wrong lane: release.lua handles it, and those after it.
        for j = i, #popped, 2 do call('ZADD', lane, popped[j + 1], popped[j]) end
        tries = 0
        break
      end
      parked, tries = parked - 1, tries - 1
    end
  end
  parkedCounts[lane] = parked
  if parked == 0 then call('SREM', KEY_RELEASE_PARKED, sub) end
  return taken
end
