-- Ends the resume of an address. If the outcome is `succeeded`, the address becomes active and its held deliveries will
-- be released; if it is `failed`, the address is paused as before.
--@include announce
--@include audit
--@include notify

local function endResume(sub, outcome, nowMs, retentionMs)
  local key = KEY_SUBSCRIPTION .. sub
  local found = call('HMGET', key, 'created_at', 'trial', 'status_reason')
  local succeeded = outcome == OUTCOME_SUCCEEDED
  local status = succeeded and ACTIVE or PAUSED
  call('HSET', key, 'status', status, 'resume_outcome', outcome, 'updated_at', nowMs)
  call('HINCRBY', key, 'revision', 1)
  call('ZADD', KEY_SUBSCRIPTIONS .. status, found[1], sub)
  call('ZREM', KEY_SUBSCRIPTIONS .. RESUMING, sub)
  call('SREM', KEY_RESUMING, sub)
  announce(sub)
  if succeeded then
    call('HSET', key, 'status_reason', '', 'consecutive_failures', 0)
    if call('EXISTS', KEY_HELD .. sub) == 1 then call('SADD', KEY_RELEASE_HELD, sub) end
  else
    notify(nowMs, NOTICE_SUBSCRIPTION_RESUME_FAILED, 's', sub, 'd', found[2], 'w', found[3])
  end
  local action = succeeded and ACTION_SUBSCRIPTION_RESUME_SUCCEEDED or ACTION_SUBSCRIPTION_RESUME_FAILED
  audit(nowMs, retentionMs, cjson.encode({action = action, subscriptionId = sub, deliveryId = found[2] or nil}))
end
