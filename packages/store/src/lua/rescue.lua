-- Gives deliveries whose job is lost a new generation and its job, if they still wait for the lost one and were not
-- parked meanwhile. A retry that is not due yet has a delayed job. Returns how many.
--@include add-job

-- Puts a job among the delayed ones, as BullMQ does. Wakes nobody: workers look every few seconds when the next is due.
local function delay(jobId, dueAtMs, nowMs)
  call('HSET', KEY_QUEUE .. jobId, 'delay', dueAtMs - nowMs)
  call('ZADD', KEY_QUEUE .. 'delayed', dueAtMs * 0x1000, jobId)
end

local rescued = 0
for deliveryId, generation in jobs do
  local found = call('HMGET', deliveryKey(deliveryId), 'st', 'g', 'e', 's', 'x')
  local st, sub, dueAtMs = found[1], found[4], tonumber(found[5]) or 0
  local isWaiting = (st == PENDING or st == WAITING_FOR_RETRY) and (found[2] or '0') == generation
  if isWaiting and not call('ZSCORE', KEY_PARKED .. sub, deliveryId) and not call('ZSCORE', KEY_OVERDUE .. sub, deliveryId) then
    local isRetry = st == WAITING_FOR_RETRY
    local jobId = makeJob(deliveryId, sub, eventOf(deliveryId, found[3]), isRetry, nowMs)
    if dueAtMs > nowMs then delay(jobId, dueAtMs, nowMs) else enqueue(jobId, isRetry and RETRY_PRIORITY or 0) end
    rescued = rescued + 1
  end
end
if rescued > 0 then wakeWorker() end
return rescued
