-- Takes the next jobs of a partition with what their attempts need, and parks deliveries whose address has no room.
--@include delivery-key
--@include add-job
--@include next-due-at
--@include park
--@include joined
--@include address
--@include error-text

-- False once lookForRetries has found that no queue of this script has delayed jobs, or jobs with a priority.
local mayHaveDelayed, mayHavePrioritized = true, true
-- Looks for retries in the queues of several partitions, a list of {prefix = …}. Usually there are none: then these
-- two commands save two for each partition.
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

-- Moves delayed jobs that are due into the queue, as BullMQ's promoteDelayedJobs does; at most MAX_PROMOTED in one
-- script. The next script moves the rest.
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

-- The state of each partition's queue, by key prefix.
local queues = {}
-- The keys of the jobs whose deliveries this script is parking.
local jobsToEnd = {}
-- Returns whether a job may be taken from the queue: an operator may have paused it with BullMQ's API, or limited how
-- many jobs may be active. Moves retries that are due into the queue, once for each partition.
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

-- Returns whether the job that popJob has just made active may stay so. Only matters if an operator limits how many
-- jobs may be active in all workers: then a share of the places (SHARE_OF_ACTIVE) is for any address, and the rest is
-- for addresses without another active job, so that a flood to one address leaves places to others.
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

-- Makes the next job active, as BullMQ's moveToActive does, but without an entry in its stream of events and without
-- writing to the job. Returns the job's id, or false and when the next delayed job is due ('' if there is none).
local function popJob(nowMs)
  if mayTake(nowMs) then
    local active = KEY_QUEUE .. 'active'
    local id = call('RPOPLPUSH', KEY_QUEUE .. 'wait', active)
    -- Most queues have no retries, and one EXISTS shows it. `pc` counts the retries that were added; BullMQ, like
    -- this script, removes it when none is left.
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

-- Sets the marker if jobs are left, which wakes a worker.
local function wakeNext()
  if call('EXISTS', KEY_QUEUE .. 'wait', KEY_QUEUE .. 'prioritized') > 0 then call('ZADD', KEY_QUEUE .. 'marker', 0, '0') end
end

-- Returns the text of a delivery's event, which is in `partition` if that is given, else in the delivery's partition.
-- Returns false if the worker has to read it: it is long, not in that partition, in a partition that this script may
-- not use, or (for a replay) in a joint record.
local function readEvent(event, partition, spansPartitions)
  if string.byte(event) == JOINT_SLASH then return false end
  local own = prefix
  if partition and spansPartitions then prefix = string.match(own, '^.*{') .. partition .. '}' end
  local text = call('GETRANGE', KEY_EVENT .. event, 0, MAX_EVENT_AT_ONCE)
  prefix = own
  return text ~= '' and #text <= MAX_EVENT_AT_ONCE and text
end

-- Returns the reply of HGETALL as a table by name.
local function fieldsOf(all)
  local fields = {}
  for i = 1, #all, 2 do fields[all[i]] = all[i + 1] end
  return fields
end

-- How many more attempts the worker may have in flight to each busy address and to any other one, and the end of its
-- last outage: attempts that were due before are overdue.
local roomOf, roomElsewhere, endOfOutageMs = {}, 0, 0
-- The addresses of which this script has parked deliveries (a list, and each one as a key), and how many more
-- deliveries it may park.
local parkedAddresses, mayPark = {}, MAX_PARKED_AT_ONCE
-- Takes the arguments of a script: `busy` is "subscription attempts …".
local function setRoom(perAddress, busy, dueBeforeMs)
  roomElsewhere, endOfOutageMs = perAddress, dueBeforeMs
  for sub, attempts in string.gmatch(busy, '(%S+) (%S+)') do roomOf[sub] = tonumber(attempts) end
end

-- Returns whether the worker may have one more attempt to an address in flight, and counts that attempt.
local function admit(sub)
  local attempts = roomOf[sub] or roomElsewhere
  if attempts <= 0 then return false end
  roomOf[sub] = attempts - 1
  return true
end

-- Marks the delivery of an active job to be parked by the next endParking. Returns false if the delivery has another
-- job or has ended. With `tellsWorker` its address is returned to the worker, which then releases the delivery when a
-- slot becomes free.
local function parkJob(jobId, id, sub, st, newest, created, retryMs, nowMs, tellsWorker)
  local generation = string.match(jobId, '%.(.+)$') or '0'
  if park(id, generation, sub, st, newest, created, retryMs, nowMs, endOfOutageMs, false) == 'superseded' then return false end
  jobsToEnd[#jobsToEnd + 1] = KEY_QUEUE .. jobId
  if tellsWorker and not parkedAddresses[sub] then
    parkedAddresses[sub] = true
    parkedAddresses[#parkedAddresses + 1] = sub
  end
  mayPark = mayPark - 1
  return true
end

-- Puts the deliveries that parkJob has marked into their lanes, and removes their jobs. These are the newest in the
-- list of active jobs, except for `taken`, a job that was taken after them and stays.
local function endParking(taken)
  local count = #jobsToEnd
  if count == 0 then return end
  addToLanes()
  call('LPOP', KEY_QUEUE .. 'active', taken and count + 1 or count)
  if taken then call('LPUSH', KEY_QUEUE .. 'active', taken) end
  call('DEL', unpack(jobsToEnd))
  jobsToEnd = {}
end

-- Call after an error. Jobs that were to be parked stay active without a lock, and BullMQ's check for stalled jobs puts
-- them back.
local function forgetParking() jobsToEnd, toPark = {}, {} end

-- Returns what the attempt of a job needs: {id, fields of the delivery, fields of its address, subscription, url, text
-- of its event}. The event is missing if it is in `known` (the worker has it) or if readEvent does not return it; if it
-- is returned, it is in `known` from then on. With `isWhole` (a joint record): {id, names and values of the whole
-- record, fields of its address, subscription, url, JOINT}. Subscription and url are separate because the worker keeps
-- them for long, and in JavaScript a part of a text keeps the whole text in memory.
local function jobReply(id, sub, found, isWhole, known, spansPartitions)
  local address = readAddress(sub)
  if isWhole then return {id, joined(found), address.fields, sub, address.url, JOINT} end
  local event = found[4]
  local text = not known[event] and readEvent(event, found[10], spansPartitions)
  if text then known[event] = true end
  return {id, joined(found), address.fields, sub, address.url, text}
end

-- Reads a delivery's record: all of it with `isWhole`, else its DELIVERY_FIELDS. Returns the reply, the subscription
-- and the status.
local function readDelivery(id, isWhole)
  if not isWhole then
    local found = call('HMGET', deliveryKey(id), DELIVERY_FIELDS)
    return found, found[9], found[1]
  end
  local found = call('HGETALL', deliveryKey(id))
  -- In most records the subscription is the first field and the status the third.
  if found[1] == 's' and found[5] == 'st' then return found, found[2], found[6] end
  local fields = fieldsOf(found)
  return found, fields.s, fields.st
end

-- Returns what jobReply returns, {id} if the job's delivery is gone, or nothing if parkJob has marked it. Throws if a
-- record that it reads is not as it must be.
local function readJob(id, nowMs, known, spansPartitions)
  local deliveryId = string.match(id, '^[^.]+')
  local isWhole = isJoint(deliveryId)
  local found, sub, st = readDelivery(deliveryId, isWhole)
  if not sub then return {id} end
  -- If its address has no place, the worker is not told: it would release the delivery at once. Instead, the
  -- worker that ends a job of the address releases it.
  local mayBeActive = hasPlace(deliveryId)
  if not (mayBeActive and admit(sub)) then
    local all = isWhole and fieldsOf(found) or {g = found[2], x = found[3], c = found[5]}
    if parkJob(id, deliveryId, sub, st, all.g, all.c, all.x, nowMs, mayBeActive) then return nil end
  end
  return jobReply(id, sub, found, isWhole, known, spansPartitions)
end

-- Calls readJob or jobReply for a job that is or becomes active. After an error returns {id, its text}: the worker that
-- has the job reports it, and other jobs are not affected.
local function tryToRead(read, id, ...)
  local isRead, reply = pcall(read, id, ...)
  if isRead then return reply end
  return {id, errorText(reply)}
end

-- Takes and locks the next job, and reads what its attempt needs. If the address has no room, parks the delivery and
-- goes on with the next job. Returns one of:
--   what tryToRead returns
--   {'', when the next delayed job is due} if no job waits
--   nothing if it has parked as many as it may; jobs may be left
local function readNext(token, lockMs, nowMs, known, spansPartitions)
  while mayPark > 0 do
    local id, dueAtMs = popJob(nowMs)
    if not id then
      endParking()
      return {'', dueAtMs}
    end
    local job = tryToRead(readJob, id, nowMs, known, spansPartitions)
    if job then
      endParking(id)
      lock(id, token, lockMs)
      return job
    end
  end
  endParking()
end

-- Returns whether readNext has found a job.
local function isJob(next) return next and next[1] ~= '' end

-- Returns what readNext returns (false instead of nothing), after the end of a job. If jobs are left, the marker is set
-- already, because adding a job sets it, and a script that takes the marker sets it again. There are three exceptions,
-- in which this wakes a worker: retries have become due, an operator limits how many jobs may be active (the end of the
-- job has freed a place), or this script has parked as many as it may.
local function nextJob(token, lockMs, nowMs, known, spansPartitions)
  local queue = queues[prefix]
  if queue then queue.addresses = nil end
  local job = readNext(token, lockMs, nowMs, known, spansPartitions)
  queue = queues[prefix]
  if not job or isJob(job) and (queue.hasDue or queue.maxActive) then wakeNext() end
  return job or false
end
