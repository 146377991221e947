--@include delivery-key
--@include next-due-at

-- Puts the jobs of retries that are due into the queue, as BullMQ's promoteDelayedJobs does.
local function promote(ids)
  call('ZREM', KEY_QUEUE .. 'delayed', unpack(ids))
  for _, id in ipairs(ids) do
    local jobKey = KEY_QUEUE .. id
    local priority = tonumber(call('HGET', jobKey, 'priority')) or 0
    if priority == 0 then
      call('LPUSH', KEY_QUEUE .. 'wait', id)
    else
      local order = call('INCR', KEY_QUEUE .. 'pc')
      call('ZADD', KEY_QUEUE .. 'prioritized', priority * 0x100000000 + order % 0x100000000, id)
    end
    call('HSET', jobKey, 'delay', 0)
  end
end

-- Puts retries that are due into the queue, once for each partition, and returns whether a job may be taken. Operators may have paused the queue in Bull
-- Board, or set how many jobs may be active.
local queues = {}
local function mayTake(nowMs)
  local queue = queues[prefix]
  if not queue then
    local meta = call('HMGET', KEY_QUEUE .. 'meta', 'paused', 'concurrency')
    local due = call('ZRANGEBYSCORE', KEY_QUEUE .. 'delayed', 0, (nowMs + 1) * 0x1000 - 1, 'LIMIT', 0, MAX_PROMOTED)
    if #due > 0 then promote(due) end
    queue = {isPaused = meta[1], maxActive = tonumber(meta[2]), hasDue = #due > 0}
    queues[prefix] = queue
  end
  return not queue.isPaused and not (queue.maxActive and call('LLEN', KEY_QUEUE .. 'active') >= queue.maxActive)
end

-- Takes the next job and locks it, as BullMQ's moveToActive does, without its stream of events and without writing to the job. Returns its id, or
-- false and the time at which the next delayed job is due, if there is one.
local function takeJob(token, lockMs, nowMs)
  local active = KEY_QUEUE .. 'active'
  if not mayTake(nowMs) then return false, '' end
  local id = call('RPOPLPUSH', KEY_QUEUE .. 'wait', active)
  if not id then
    id = call('ZPOPMIN', KEY_QUEUE .. 'prioritized')[1]
    if id then call('LPUSH', active, id) else call('DEL', KEY_QUEUE .. 'pc') end
  end
  if not id then return false, nextDueAt() end
  call('SET', KEY_QUEUE .. id .. ':lock', token, 'PX', lockMs)
  return id
end

-- If jobs are left, wakes a worker that waits for the marker.
local function wakeNext()
  if call('EXISTS', KEY_QUEUE .. 'wait', KEY_QUEUE .. 'prioritized') > 0 then call('ZADD', KEY_QUEUE .. 'marker', 0, '0') end
end

-- The text of the event of a job; false if it is long, in another partition that the job does not name or that a script may not use from here, or
-- in a joint record: that of a replay may be.
local function readEvent(jobId, event, spansPartitions)
  if string.byte(event) == JOINT_SLASH then return false end
  local own = prefix
  local partition = spansPartitions and call('HGET', KEY_QUEUE .. jobId, 'p')
  if partition then prefix = string.gsub(own, '%d+}$', partition .. '}') end
  local text = call('GETRANGE', KEY_EVENT .. event, 0, MAX_EVENT_AT_ONCE)
  prefix = own
  return text ~= '' and #text <= MAX_EVENT_AT_ONCE and text
end

-- The subscription that a joint record names; its field is the first one of most.
local function subscriptionIn(all)
  for i = 1, #all, 2 do
    if all[i] == 's' then return all[i + 1] end
  end
end

-- Takes the next job and reads what its attempt needs: {id, fields of the delivery, fields of its address, text of its event}. The event is missing if
-- it is in `known`, as it is from then on, or readEvent does not return it. For a joint record: {id, all of it, fields of its address, JOINT}. Returns
-- {'', when the next delayed job is due} if no job waits, {id} if its delivery is gone.
local function readNext(token, lockMs, nowMs, known, spansPartitions)
  local id, dueAtMs = takeJob(token, lockMs, nowMs)
  if not id then return {'', dueAtMs} end
  local deliveryId = string.match(id, '^[^.]+')
  local key = deliveryKey(deliveryId)
  if isJoint(deliveryId) then
    local all = call('HGETALL', key)
    local sub = subscriptionIn(all)
    if not sub then return {id} end
    return {id, all, call('HMGET', KEY_SUBSCRIPTION .. sub, ADDRESS_FIELDS), JOINT}
  end
  local found = call('HMGET', key, DELIVERY_FIELDS)
  local event, sub = found[4], found[9]
  if not sub then return {id} end
  local text = not known[event] and readEvent(id, event, spansPartitions)
  if text then known[event] = true end
  return {id, found, call('HMGET', KEY_SUBSCRIPTION .. sub, ADDRESS_FIELDS), text}
end

-- The same at the end of a job. Whoever adds a job, and whoever takes the marker, sets the marker if jobs are left; so it is only missing where retries
-- have become due, or where fewer jobs were active for a moment than operators allow.
local function nextJob(token, lockMs, nowMs, known, spansPartitions)
  local job = readNext(token, lockMs, nowMs, known, spansPartitions)
  local queue = queues[prefix]
  if job[1] ~= '' and (queue.hasDue or queue.maxActive) then wakeNext() end
  return job
end
