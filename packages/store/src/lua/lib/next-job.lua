-- Takes the next jobs of a partition with what their attempts need, and parks deliveries whose address has no room.
--@include delivery-key
--@include add-job
--@include next-due-at
--@include park
--@include joined
--@include address

-- Whether any queue that the script takes from may have delayed jobs, and jobs with a priority. Usually none has.
local mayHaveDelayed, mayHavePrioritized = true, true
-- Looks for retries in the queues of several partitions, a list of {prefix = …}, with two calls in place of two for each.
local function lookForRetries(partitions)
  local delayed, prioritized = {}, {}
  for _, one in ipairs(partitions) do
    prefix = one.prefix
    delayed[#delayed + 1] = KEY_QUEUE .. 'delayed'
    prioritized[#prioritized + 1] = KEY_QUEUE .. 'prioritized'
    prioritized[#prioritized + 1] = KEY_QUEUE .. 'pc'
  end
  mayHaveDelayed = call('EXISTS', unpack(delayed)) > 0
  mayHavePrioritized = call('EXISTS', unpack(prioritized)) > 0
end

-- Puts the jobs of retries that are due into the queue, as BullMQ's promoteDelayedJobs does. Retries above the limit of
-- this script are left to the next script.
local mayPromote = MAX_PROMOTED
local function promoteDue(nowMs)
  if mayPromote <= 0 then return end
  local ids = call('ZRANGEBYSCORE', KEY_QUEUE .. 'delayed', 0, (nowMs + 1) * 0x1000 - 1, 'LIMIT', 0, mayPromote)
  mayPromote = mayPromote - #ids
  call('ZREM', KEY_QUEUE .. 'delayed', unpack(ids))
  mayHavePrioritized = true
  for _, id in ipairs(ids) do
    local jobKey = KEY_QUEUE .. id
    enqueue(id, tonumber(call('HGET', jobKey, 'priority')) or 0)
    call('HSET', jobKey, 'delay', 0)
  end
end

-- Puts retries that are due into the queue, once for each partition, and returns whether a job may be taken. Operators
-- may have paused the queue with BullMQ's API, or set how many jobs may be active.
local queues = {}
-- The keys of the jobs of deliveries that are being parked.
local jobsToEnd = {}
local function mayTake(nowMs)
  local queue = queues[prefix]
  if not queue then
    local meta = call('HMGET', KEY_QUEUE .. 'meta', 'paused', 'concurrency')
    local dueAt = mayHaveDelayed and nextDueAt() or ''
    local hasDue = dueAt ~= '' and tonumber(dueAt) <= nowMs
    if hasDue then promoteDue(nowMs) end
    queue = {isPaused = meta[1], maxActive = tonumber(meta[2]), hasDue = hasDue, dueAt = dueAt}
    queues[prefix] = queue
  end
  if queue.maxActive then queue.active = call('LLEN', KEY_QUEUE .. 'active') - #jobsToEnd end
  return not queue.isPaused and not (queue.maxActive and queue.active >= queue.maxActive)
end

-- Whether the address of a delivery may have one more job active, in all workers, besides the one that popJob has put
-- into the list of active jobs. If operators limit how many may be active, only a share of the places is for any
-- address; the rest is for addresses that have no active job, so a flood leaves places to others.
local function hasPlace(deliveryId)
  local queue = queues[prefix]
  if not queue.maxActive or queue.maxActive > MAX_ACTIVE_LOOKED_THROUGH then return true end
  if queue.active < math.max(1, math.floor(queue.maxActive * SHARE_OF_ACTIVE)) then return true end
  if not queue.addresses then
    queue.addresses = {}
    for _, id in ipairs(call('LRANGE', KEY_QUEUE .. 'active', 1 + #jobsToEnd, -1)) do queue.addresses[string.sub(id, 1, DELIVERY_PREFIX)] = true end
  end
  local address = string.sub(deliveryId, 1, DELIVERY_PREFIX)
  if queue.addresses[address] then return false end
  queue.addresses[address] = true
  return true
end

-- Puts the next job into the list of the active ones, as BullMQ's moveToActive does, without its stream of events and
-- without writing to the job. Returns its id, or false and the time at which the next delayed job is due, if there is
-- one.
local function popJob(nowMs)
  if mayTake(nowMs) then
    local active = KEY_QUEUE .. 'active'
    local id = call('RPOPLPUSH', KEY_QUEUE .. 'wait', active)
    -- Most queues have no retries. `pc` counts the retries that were added; BullMQ removes it when none is left.
    if not id and mayHavePrioritized and call('EXISTS', KEY_QUEUE .. 'prioritized', KEY_QUEUE .. 'pc') > 0 then
      id = call('ZPOPMIN', KEY_QUEUE .. 'prioritized')[1]
      if id then call('LPUSH', active, id) else call('DEL', KEY_QUEUE .. 'pc') end
    end
    if id then return id end
  end
  local queue = queues[prefix]
  return false, queue.hasDue and nextDueAt() or queue.dueAt
end

local function lock(id, token, lockMs) call('SET', KEY_QUEUE .. id .. ':lock', token, 'PX', lockMs) end

-- If jobs are left, wakes a worker that waits for the marker.
local function wakeNext()
  if call('EXISTS', KEY_QUEUE .. 'wait', KEY_QUEUE .. 'prioritized') > 0 then call('ZADD', KEY_QUEUE .. 'marker', 0, '0') end
end

-- Returns the text of a delivery's event, which is in `partition` if given, else in the delivery's own. Returns false
-- if the text is long, in a partition that is not named or that this script may not use, or (for a replay) in a joint
-- record.
local function readEvent(event, partition, spansPartitions)
  if string.byte(event) == JOINT_SLASH then return false end
  local own = prefix
  if partition and spansPartitions then prefix = string.match(own, '^.*{') .. partition .. '}' end
  local text = call('GETRANGE', KEY_EVENT .. event, 0, MAX_EVENT_AT_ONCE)
  prefix = own
  return text ~= '' and #text <= MAX_EVENT_AT_ONCE and text
end

-- The fields of a joint record, the subscription among them, by name.
local function fieldsOf(all)
  local fields = {}
  for i = 1, #all, 2 do fields[all[i]] = all[i + 1] end
  return fields
end

-- How many more attempts the worker may have in flight to each busy address, and to any other one.
local roomOf, roomElsewhere, endOfOutageMs = {}, 0, 0
-- The addresses of which this script has parked deliveries, and how many more it may park.
local parkedAddresses, mayPark = {}, MAX_PARKED_AT_ONCE
local function setRoom(perAddress, busy, dueBeforeMs)
  roomElsewhere, endOfOutageMs = perAddress, dueBeforeMs
  for sub, attempts in string.gmatch(busy, '(%S+) (%S+)') do roomOf[sub] = tonumber(attempts) end
end

-- Whether one more attempt to an address may be in flight, which counts from now on.
local function admit(sub)
  local attempts = roomOf[sub] or roomElsewhere
  if attempts <= 0 then return false end
  roomOf[sub] = attempts - 1
  return true
end

-- Parks the delivery of a job that was put into the list of the active ones, with the next endParking. Returns false if
-- the delivery has another job or ended. `isTold`: whether the worker is to look for a slot.
local function parkJob(jobId, id, sub, st, newest, created, retryMs, nowMs, isTold)
  local generation = string.match(jobId, '%.(.+)$') or '0'
  if park(id, generation, sub, st, newest, created, retryMs, nowMs, endOfOutageMs, false) == 'superseded' then return false end
  jobsToEnd[#jobsToEnd + 1] = KEY_QUEUE .. jobId
  if isTold and not parkedAddresses[sub] then
    parkedAddresses[sub] = true
    parkedAddresses[#parkedAddresses + 1] = sub
  end
  mayPark = mayPark - 1
  return true
end

-- Puts the deliveries of parkJob into their lanes, and removes their jobs: the newest in the list of the active ones,
-- but for `taken`, which came after them.
local function endParking(taken)
  local count = #jobsToEnd
  if count == 0 then return end
  addToLanes()
  call('LPOP', KEY_QUEUE .. 'active', taken and count + 1 or count)
  if taken then call('LPUSH', KEY_QUEUE .. 'active', taken) end
  call('DEL', unpack(jobsToEnd))
  jobsToEnd = {}
end

-- After an error, the jobs of deliveries not yet parked stay active without a lock, so BullMQ's stalled check puts them back.
local function forgetParking() jobsToEnd, toPark = {}, {} end

-- What the attempt of a job needs: {id, fields of the delivery, fields of its address, subscription, url, text of its
-- event}. The event is missing if it is in `known`, as it is from then on, or readEvent does not return it. For a joint
-- record: {id, all of it, fields of its address, subscription, url, JOINT}. What the worker keeps for long is returned
-- on its own: a part of a text keeps all of it.
local function withAddress(id, sub, found, isWhole, known, spansPartitions)
  local address = readAddress(sub)
  if isWhole then return {id, joined(found), address.fields, sub, address.url, JOINT} end
  local event = found[4]
  local text = not known[event] and readEvent(event, found[10], spansPartitions)
  if text then known[event] = true end
  return {id, joined(found), address.fields, sub, address.url, text}
end

-- What a delivery's record says, as withAddress expects it; and its subscription and status. If it can't be read,
-- parking ends before the script does: `taken` is its job, which stays active.
local function readDelivery(id, isWhole, taken)
  local found
  if isWhole then found = redis.pcall('HGETALL', deliveryKey(id)) else found = redis.pcall('HMGET', deliveryKey(id), DELIVERY_FIELDS) end
  if found.err then
    endParking(taken)
    error(found)
  end
  if not isWhole then return found, found[9], found[1] end
  -- The fields of the subscription and the status are the first and the third one of most.
  if found[1] == 's' and found[5] == 'st' then return found, found[2], found[6] end
  local fields = fieldsOf(found)
  return found, fields.s, fields.st
end

-- Takes the next job, and reads what its attempt needs. A delivery whose address has no room is parked in place of
-- being taken. Returns what withAddress returns, {'', when the next delayed job is due} if no job waits, {id} if its
-- delivery is gone, or nothing if enough were parked and jobs may be left.
local function readNext(token, lockMs, nowMs, known, spansPartitions)
  while mayPark > 0 do
    local id, dueAtMs = popJob(nowMs)
    if not id then
      endParking()
      return {'', dueAtMs}
    end
    local deliveryId = string.match(id, '^[^.]+')
    local isWhole = isJoint(deliveryId)
    local found, sub, st = readDelivery(deliveryId, isWhole, id)
    local isParked = false
    -- The worker is not told of a delivery without a place, which would come back at once. When the address's job ends anywhere, it is released.
    local mayBeActive = not sub or hasPlace(deliveryId)
    if sub and not (mayBeActive and admit(sub)) then
      local all = isWhole and fieldsOf(found) or {g = found[2], x = found[3], c = found[5]}
      isParked = parkJob(id, deliveryId, sub, st, all.g, all.c, all.x, nowMs, mayBeActive)
    end
    if not isParked then
      endParking(id)
      lock(id, token, lockMs)
      if not sub then return {id} end
      return withAddress(id, sub, found, isWhole, known, spansPartitions)
    end
  end
  endParking()
end

-- Notes the new generation of a delivery in what readDelivery has returned. Of a joint record, the worker reads the last value of a name.
local function setGeneration(found, isWhole, generation)
  if isWhole then
    found[#found + 1] = 'g'
    found[#found + 1] = generation
  else
    found[2] = generation
  end
end

-- Takes up to `limit` parked deliveries of an address that is active, oldest first: each gets a new generation, whose
-- job is active at once. Returns a list of what withAddress returns. Where operators limit how many jobs may be active,
-- other addresses would never have a turn, so none is taken.
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
      local found, _, st = readDelivery(deliveryId, isWhole)
      -- Others have ended while they were parked.
      if st == PENDING or st == WAITING_FOR_RETRY then
        local id, generation = makeJob(deliveryId, sub, eventOf(deliveryId, not isWhole and found[4]), st == WAITING_FOR_RETRY, nowMs)
        -- Comes before anything that may fail: no process looks for a job that exists but is in no list.
        call('LPUSH', KEY_QUEUE .. 'active', id)
        lock(id, token, lockMs)
        setGeneration(found, isWhole, generation)
        taken[#taken + 1] = withAddress(id, sub, found, isWhole, known, spansPartitions)
      elseif st == HELD then
        -- release.lua handles this delivery and those after it.
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

-- Whether readNext has found a job.
local function isJob(next) return next and next[1] ~= '' end

-- The same at the end of a job. Whoever adds a job, and whoever takes the marker, sets the marker if jobs are left; so
-- it is only missing where retries have become due, or where fewer jobs were active for a moment than operators allow.
local function nextJob(token, lockMs, nowMs, known, spansPartitions)
  local queue = queues[prefix]
  if queue then queue.addresses = nil end
  local job = readNext(token, lockMs, nowMs, known, spansPartitions)
  queue = queues[prefix]
  if not job or isJob(job) and (queue.hasDue or queue.maxActive) then wakeNext() end
  return job or false
end
