-- Records a failed attempt. The delivery then waits for its retry, or has failed for `reason` if `nextAttemptAtMs` is
-- empty. If it has failed, counts a consecutive failure of its address, with a notice at a quarter, half and three
-- quarters of `pauseAfter`, and pauses the address at `pauseAfter`. A failed trial ends the resume. The states of the
-- address are those of `nextAddressState` of packages/core (specification 3.2).
-- It is one script so that each attempt is recorded and counted once, even if it is sent again or two workers report
-- it: the number of recorded attempts must be `number` - 1. Sent again because the reply was lost, it returns what it
-- returned before, so that the attempt is still logged and counted.
-- Returns {'recorded', 'repeated' (another attempt has this number) or 'over' (the delivery has ended); 1 if this
-- paused the address; deliveries parked at the address}.
--@include notify
--@include delivery-key
--@include status
--@include fail
--@include audit
--@include announce
--@include end-resume

local key = deliveryKey(id)
local found = call('HMGET', key, 'st', 'n', 's', 'c', 'd', 'a' .. number)
local st, sub, created, wasSent = found[1], found[3], found[4], found[6] == attempt
if not st or isFinished(st) and not wasSent then return {'over', 0, 0} end
local parked = call('ZCARD', KEY_PARKED .. sub)
local subscription = KEY_SUBSCRIPTION .. sub
if wasSent then
  local hasPaused = call('HGET', subscription, 'paused_by') == id and nextAttemptAtMs == ''
  return {'recorded', hasPaused and 1 or 0, parked}
end
if tonumber(found[2]) ~= number - 1 then return {'repeated', 0, parked} end
call('HSET', key, 'n', number, 'a' .. number, attempt)
-- Another job of the delivery was held while this attempt was in flight.
if st == HELD then call('ZREM', KEY_HELD .. sub, id) end
if maxAttempts ~= '' then call('HSET', key, 'm', maxAttempts) end
-- The responses of the first and the last failed attempt are kept. Each retry extends their expiry, and the end of the
-- delivery sets the final one.
local responses = KEY_RESPONSES .. id
if response ~= '' then call('HSET', responses, number, response) end
if number > 2 then call('HDEL', responses, number - 1) end
local isRetry = nextAttemptAtMs ~= ''
if isRetry then
  call('PEXPIREAT', responses, neededUntilMs)
  call('HSET', key, 'st', WAITING_FOR_RETRY, 'x', nextAttemptAtMs)
  if found[5] then call('HDEL', key, 'd') end
  move(id, created, st, WAITING_FOR_RETRY)
else
  fail(id, st, sub, created, reason, endedAtMs, neededUntilMs, retentionMs)
end
local address = call('HMGET', subscription, 'status', 'created_at', 'trial', 'consecutive_failures')
local failures = tonumber(address[4]) or 0
if address[1] == RESUMING and address[3] == id then endResume(sub, OUTCOME_FAILED, endedAtMs, retentionMs) end
if isRetry or address[1] ~= ACTIVE then return {'recorded', 0, parked} end
failures = math.min(failures + 1, pauseAfter)
call('HSET', subscription, 'consecutive_failures', failures)
if failures < pauseAfter then
  for quarter = 1, 3 do
    if failures == math.floor(pauseAfter * quarter / 4) then
      notify(endedAtMs, NOTICE_SUBSCRIPTION_FAILURES, 's', sub, 'n', failures, 'l', pauseAfter)
      break
    end
  end
  return {'recorded', 0, parked}
end
call('HSET', subscription, 'status', PAUSED, 'status_reason', REASON_CONSECUTIVE_FAILURES, 'updated_at', endedAtMs,
  'paused_at', endedAtMs, 'paused_by', id)
call('HINCRBY', subscription, 'revision', 1)
call('ZADD', KEY_SUBSCRIPTIONS .. PAUSED, address[2], sub)
call('ZREM', KEY_SUBSCRIPTIONS .. ACTIVE, sub)
announce(sub)
notify(endedAtMs, NOTICE_SUBSCRIPTION_PAUSED, 's', sub, 'w', REASON_CONSECUTIVE_FAILURES)
local detail = {reason = REASON_CONSECUTIVE_FAILURES, consecutive_failures = failures}
local entry = {action = ACTION_SUBSCRIPTION_PAUSED, subscriptionId = sub, detail = detail}
audit(endedAtMs, retentionMs, cjson.encode(entry))
return {'recorded', 1, parked}
