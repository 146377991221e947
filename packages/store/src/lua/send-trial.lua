-- Puts the trial of an address that is resuming into the queue: among the oldest held deliveries the one with the
-- fewest attempts. It is one script so that an address has one trial at a time, and does not become active or paused
-- meanwhile. Replaces a trial that was held again, has ended or is gone, or whose next attempt is more than
-- MAX_TRIAL_WAIT_MS away: otherwise the address would wait for as long. If no delivery is left in any lane, the address
-- becomes active. Returns {'sent', delivery, attempts recorded}; {'waiting'} if a trial is on its way, or other duties
-- have yet to move deliveries into the held lane; {'over'} if the address is not resuming any more.
--@include delivery-key
--@include add-job
--@include release-held
--@include end-resume

local key = KEY_SUBSCRIPTION .. subscriptionId
local address = call('HMGET', key, 'status', 'trial')
if address[1] ~= RESUMING then
  call('SREM', KEY_RESUMING, subscriptionId)
  return {'over'}
end
if address[2] then
  local trial = call('HMGET', deliveryKey(address[2]), 'st', 'x')
  if trial[1] == SUCCEEDED then
    endResume(subscriptionId, OUTCOME_SUCCEEDED, nowMs, retentionMs)
    return {'over'}
  end
  local isOnItsWay = trial[1] == PENDING or trial[1] == WAITING_FOR_RETRY
  if isOnItsWay and (tonumber(trial[2]) or 0) - nowMs <= MAX_TRIAL_WAIT_MS then return {'waiting'} end
end
local lane = KEY_HELD .. subscriptionId
local chosen, record
local held = call('ZRANGE', lane, 0, MAX_TRIAL_CHOICE - 1)
for _, id in ipairs(held) do
  local found = call('HMGET', deliveryKey(id), 'st', 'n', 'c', 'e')
  if found[1] ~= HELD then
    call('ZREM', lane, id)
  elseif not record or tonumber(found[2]) < tonumber(record[2]) then
    chosen, record = id, found
  end
end
if not record then
  local isEmpty = call('EXISTS', lane, KEY_PARKED .. subscriptionId, KEY_OVERDUE .. subscriptionId) == 0
  if not isEmpty then return {'waiting'} end
  call('HDEL', key, 'trial')
  endResume(subscriptionId, OUTCOME_SUCCEEDED, nowMs, retentionMs)
  return {'over'}
end
call('HSET', key, 'trial', chosen)
local isRetry = record[2] ~= '0'
releaseHeld(chosen, record[3], isRetry, nowMs)
call('ZREM', lane, chosen)
local jobId = makeJob(chosen, subscriptionId, eventOf(chosen, record[4]), isRetry, nowMs)
enqueue(jobId, isRetry and RETRY_PRIORITY or 0)
wakeWorker()
return {'sent', chosen, record[2]}
