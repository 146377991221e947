-- Adds the first jobs of deliveries, each in the step that makes its delivery. A job is stored as BullMQ's `add` stores
-- one without options, but without entries in BullMQ's stream of events, which nobody reads, and without a copy of the
-- id in `opts`. A test of packages/dispatch compares the two, since an update of BullMQ may change what it stores.

-- The new jobs, by the prefix of their partition and in order, each list with the beginning of its queue's keys.
local added = {}

-- Makes the first job of a delivery in the partition of `prefix`, which may change between two calls. `addToQueues` puts
-- it into the queue. The job has no data if `event` is false: since stored format 2 the record of the delivery says it.
-- A job that exists is left unchanged; with `isNew` its delivery has just been made, so it has none.
local function addFirstJob(deliveryId, subscriptionId, event, nowMs, isNew)
  local key = KEY_QUEUE .. deliveryId
  if not isNew and call('EXISTS', key) == 1 then return end
  call('HSET', key, 'name', subscriptionId, 'timestamp', nowMs)
  if event then call('HSET', key, 'data', '{"event_id":"' .. event .. '"}') end
  local ids = added[prefix]
  if not ids then
    ids = {queue = KEY_QUEUE}
    added[prefix] = ids
    added[#added + 1] = ids
  end
  ids[#ids + 1] = deliveryId
end

-- Wakes a worker even if the queue is paused or as many jobs are active as operators allow: it finds out with its next
-- script.
local function addToQueue(ids)
  call('LPUSH', ids.queue .. 'wait', unpack(ids))
  call('ZADD', ids.queue .. 'marker', 0, '0')
end

-- Puts the new jobs into the queues: no job is waiting before that. A script must call it after the last addFirstJob,
-- also if something has failed between them. Returns the first error, or nil: a queue that fails keeps no job out of the
-- others.
local function addToQueues()
  local problem
  for _, ids in ipairs(added) do
    local isAdded, why = pcall(addToQueue, ids)
    if not isAdded then problem = problem or why end
  end
  return problem
end
