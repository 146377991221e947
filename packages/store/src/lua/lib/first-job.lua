-- Adds the first job of each delivery in the script that makes the delivery. A job is stored as BullMQ's `add` stores
-- it without options, but without an entry in BullMQ's stream of events, which nobody reads, and without a copy of the
-- id in `opts`. A test of packages/dispatch compares both, because an update of BullMQ may change what it stores.

-- For each partition a list of the ids of new jobs, with the beginning of its queue's keys: by key prefix, and in
-- order.
local added = {}

-- Makes the first job of a delivery in the partition of `prefix`, which may be another one in each call. `addToQueues`
-- puts the job into the queue. If `event` is false, the job has no data: since stored format 2 the event is only in the
-- delivery's record. Does not change an existing job. With `isNew` the delivery has just been made, so it has none.
local function addFirstJob(jobId, subscriptionId, event, nowMs, isNew)
  local key = KEY_QUEUE .. jobId
  if not isNew and call('EXISTS', key) == 1 then return end
  -- Fields that are not new are those of a failed job, which BullMQ keeps for longer than an expired delivery with the
  -- same id. Among the failed ones the new job would be taken for lost, and another one made.
  while call('HSET', key, 'name', subscriptionId, 'timestamp', nowMs) < 2 do
    call('DEL', key)
    call('ZREM', KEY_QUEUE .. 'failed', jobId)
  end
  if event then call('HSET', key, 'data', '{"event_id":"' .. event .. '"}') end
  local ids = added[prefix]
  if not ids then
    ids = {queue = KEY_QUEUE}
    added[prefix] = ids
    added[#added + 1] = ids
  end
  ids[#ids + 1] = jobId
end

-- Wakes a worker even if the queue is paused or has as many active jobs as operators allow: the worker finds that out
-- with its next script.
local function addToQueue(ids)
  call('LPUSH', ids.queue .. 'wait', unpack(ids))
  call('ZADD', ids.queue .. 'marker', 0, '0')
end

-- Puts the new jobs into the queues, where workers can take them. A script must call it after the last addFirstJob,
-- also if there was an error. An error in one queue does not affect the others. Returns the first error, or nil.
local function addToQueues()
  local problem
  for _, ids in ipairs(added) do
    local isAdded, why = pcall(addToQueue, ids)
    if not isAdded then problem = problem or why end
  end
  return problem
end
