-- Finds deliveries that wait for a job that is gone or comes too late, and gives each one a new generation and its job.
-- Looks at up to `limit` entries of an index of unfinished deliveries (`key`), made until `beforeMs`, after the entry
-- `afterId` of `afterMs`. It is one script so that a delivery which gets its job at the same moment does not get a
-- second one. A delivery whose record is not as it must be does not keep the others from their jobs. The entry of one
-- whose record was deleted is removed: it would count as waiting for ever.
-- Returns {entries looked at, records read, jobs made, time of the last entry, id of the last entry, the first delivery
-- that could not be looked at with the error, empty if there is none}.
--@include delivery-key
--@include error-of-key
--@include add-job
--@include current-job

-- Puts the job of a retry that is not due yet among the delayed ones, as BullMQ does. Wakes nobody: every few seconds,
-- workers look up when the next job is due.
local function delay(jobId, dueAtMs, nowMs)
  call('HSET', KEY_QUEUE .. jobId, 'delay', dueAtMs - nowMs)
  call('ZADD', KEY_QUEUE .. 'delayed', dueAtMs * 0x1000, jobId)
end

-- Goes on by rank, because any number of deliveries may be made in one millisecond. If the entry is gone, goes on at
-- its time.
local start = 0
if afterId ~= '' then
  local rank = call('ZRANK', key, afterId)
  start = rank and rank + 1 or call('ZCOUNT', key, '-inf', '(' .. afterMs)
end
local entries = call('ZRANGE', key, start, start + limit - 1, 'WITHSCORES')
local ids, groups, groupOf, lastMs = {}, {}, {}, ''
for i = 1, #entries, 2 do
  if tonumber(entries[i + 1]) > beforeMs then break end
  local id = entries[i]
  local begin = string.sub(id, 1, DELIVERY_PREFIX)
  if not groupOf[begin] then
    groupOf[begin] = {}
    groups[#groups + 1] = groupOf[begin]
  end
  table.insert(groupOf[begin], id)
  ids[#ids + 1] = id
  lastMs = entries[i + 1]
end

-- Asks with one command for each lane which deliveries of an address are in it, because millions may be. A group may
-- contain another address whose deliveries' ids begin alike: the loop below looks up its deliveries one by one.
local isInLane = {}
local function lookInLane(group, lane, sub, releaseIndex)
  local isUsed = false
  local scores = call('ZMSCORE', lane .. sub, unpack(group))
  for i, id in ipairs(group) do
    isInLane[id] = isInLane[id] or scores[i]
    isUsed = isUsed or scores[i]
  end
  -- It is in this set, unless another program has overwritten it: then nothing would release the lane.
  if isUsed then call('SADD', releaseIndex, sub) end
end
local function lookInLanes(group)
  local sub = call('HGET', deliveryKey(group[1]), 's')
  if not sub then return end
  lookInLane(group, KEY_PARKED, sub, KEY_RELEASE_PARKED)
  lookInLane(group, KEY_OVERDUE, sub, KEY_RELEASE_OVERDUE)
end
-- After an error, makeIfLost looks up each delivery of the group.
for _, group in ipairs(groups) do pcall(lookInLanes, group) end

local read, rescued, problem = 0, 0, ''
-- Whether a delivery that is unfinished has no job, or one that fits a record which a failover has lost: kept as failed
-- (for Bull Board) after the last attempt, or delayed until a later retry although the delivery is due by its record.
local function isLost(jobId, dueAtMs)
  if call('EXISTS', KEY_QUEUE .. jobId) == 0 or call('ZSCORE', KEY_QUEUE .. 'failed', jobId) then return true end
  local score = dueAtMs <= nowMs and call('ZSCORE', KEY_QUEUE .. 'delayed', jobId)
  return score and score / 0x1000 > nowMs + MAX_SNOOZE_MS
end
-- Makes a delivery's job if it is lost. Returns the job's id, whether it is a retry, and when it is due.
local function makeIfLost(id)
  local found = call('HMGET', deliveryKey(id), 'st', 'g', 'e', 's', 'x')
  local st, sub, dueAtMs = found[1], found[4], tonumber(found[5]) or 0
  if not st and call('EXISTS', deliveryKey(id)) == 0 then call('ZREM', key, id) end
  if (st == PENDING or st == WAITING_FOR_RETRY) and isLost(jobIdOf(id, found[2]), dueAtMs)
    and not call('ZSCORE', KEY_PARKED .. sub, id) and not call('ZSCORE', KEY_OVERDUE .. sub, id) then
    local isRetry = st == WAITING_FOR_RETRY
    dropRetry(id, found[2])
    return makeJob(id, sub, eventOf(id, found[3]), isRetry, nowMs), isRetry, dueAtMs
  end
end
for _, id in ipairs(ids) do
  if not isInLane[id] then
    read = read + 1
    local isDone, newId, isRetry, dueAtMs = pcall(makeIfLost, id)
    if not isDone then
      local why = errorOfKey(newId)
      if problem == '' then problem = id .. ': ' .. why end
    elseif newId then
      if dueAtMs > nowMs then delay(newId, dueAtMs, nowMs) else enqueue(newId, isRetry and RETRY_PRIORITY or 0) end
      rescued = rescued + 1
    end
  end
end
if rescued > 0 then wakeWorker() end
return {#ids, read, rescued, lastMs, ids[#ids] or '', problem}
