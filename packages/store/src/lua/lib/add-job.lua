-- Makes jobs for deliveries in BullMQ's form, puts them into the queue, and wakes workers for them.
--@include delivery-key

-- Gives a delivery its next generation and makes the job for it, but does not put the job into the queue. With
-- `waitsBehind` (a retry, or a delivery that was held or overdue) the job gets the priority of retries. Each field is
-- shorter than 64 bytes (with an event id made by Posthorn), so that Redis keeps the job compact. Returns the job's id
-- and the generation.
local function makeJob(id, sub, event, waitsBehind, nowMs)
  local generation = tostring(call('HINCRBY', deliveryKey(id), 'g', 1))
  local jobId = id .. '.' .. generation
  call('HSET', KEY_QUEUE .. jobId, 'name', sub, 'timestamp', nowMs, 'data', '{"event_id":"' .. event .. '"}')
  if waitsBehind then call('HSET', KEY_QUEUE .. jobId, 'priority', RETRY_PRIORITY) end
  return jobId, generation
end

-- Puts a job into the queue behind those of its priority, as BullMQ does. Wakes no worker.
local function enqueue(jobId, priority)
  if priority == 0 then
    call('LPUSH', KEY_QUEUE .. 'wait', jobId)
  else
    local order = call('INCR', KEY_QUEUE .. 'pc')
    call('ZADD', KEY_QUEUE .. 'prioritized', priority * 0x100000000 + order % 0x100000000, jobId)
  end
end

-- Wakes a worker for jobs that were added, unless the queue is paused or as many jobs are active as operators allow.
local function wakeWorker()
  local limits = call('HMGET', KEY_QUEUE .. 'meta', 'paused', 'concurrency')
  local isFull = limits[2] and call('LLEN', KEY_QUEUE .. 'active') >= tonumber(limits[2])
  if not limits[1] and not isFull then call('ZADD', KEY_QUEUE .. 'marker', 0, '0') end
end
