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

-- Takes the next job and locks it, as BullMQ's moveToActive does, without its stream of events and without writing to the job. Returns its id, or
-- false and the time at which the next delayed job is due, if there is one.
local function takeJob(token, lockMs, nowMs)
  local wait, prioritized, active = KEY_QUEUE .. 'wait', KEY_QUEUE .. 'prioritized', KEY_QUEUE .. 'active'
  -- Operators may have paused the queue in Bull Board, or set how many jobs may be active.
  local meta = call('HMGET', KEY_QUEUE .. 'meta', 'paused', 'concurrency')
  local due = call('ZRANGEBYSCORE', KEY_QUEUE .. 'delayed', 0, (nowMs + 1) * 0x1000 - 1, 'LIMIT', 0, MAX_PROMOTED)
  if #due > 0 then promote(due) end
  if meta[1] or meta[2] and call('LLEN', active) >= tonumber(meta[2]) then return false, '' end
  local id = call('RPOPLPUSH', wait, active)
  if not id then
    id = call('ZPOPMIN', prioritized)[1]
    if id then call('LPUSH', active, id) else call('DEL', KEY_QUEUE .. 'pc') end
  end
  if not id then
    local next = call('ZRANGE', KEY_QUEUE .. 'delayed', 0, 0, 'WITHSCORES')[2]
    return false, next and string.format('%.0f', math.floor(tonumber(next) / 0x1000)) or ''
  end
  call('SET', KEY_QUEUE .. id .. ':lock', token, 'PX', lockMs)
  return id
end

-- A worker that waits for jobs takes the marker. If jobs are left, it wakes the next worker.
local function wakeNext()
  if call('EXISTS', KEY_QUEUE .. 'wait', KEY_QUEUE .. 'prioritized') > 0 then call('ZADD', KEY_QUEUE .. 'marker', 0, '0') end
end

-- The text of the event of a job; false if it is long, or in another partition that the job does not name or that a script may not use from here.
local function readEvent(jobId, event, spansPartitions)
  local own = prefix
  local partition = spansPartitions and call('HGET', KEY_QUEUE .. jobId, 'p')
  if partition then prefix = string.gsub(own, '%d+}$', partition .. '}') end
  local text = call('GETRANGE', KEY_EVENT .. event, 0, MAX_EVENT_AT_ONCE)
  prefix = own
  return text ~= '' and #text <= MAX_EVENT_AT_ONCE and text
end

-- Takes the next job and reads what its attempt needs: {id, fields of the delivery, fields of its address, text of its event}. The event is missing if
-- it is `knownEvent`, or readEvent does not return it. Returns {'', when the next delayed job is due} if no job waits, {id} if its delivery is gone.
local function readNext(token, lockMs, nowMs, knownEvent, spansPartitions)
  local id, dueAtMs = takeJob(token, lockMs, nowMs)
  if not id then return {'', dueAtMs} end
  local found = call('HMGET', KEY_DELIVERY .. string.match(id, '^[^.]+'), DELIVERY_FIELDS)
  local event, sub = found[4], found[9]
  if not sub then return {id} end
  local text = event ~= knownEvent and readEvent(id, event, spansPartitions)
  return {id, found, call('HMGET', KEY_SUBSCRIPTION .. sub, ADDRESS_FIELDS), text}
end

-- The same, and wakes the next worker.
local function nextJob(token, lockMs, nowMs, knownEvent, spansPartitions)
  local job = readNext(token, lockMs, nowMs, knownEvent, spansPartitions)
  if job[1] ~= '' then wakeNext() end
  return job
end
