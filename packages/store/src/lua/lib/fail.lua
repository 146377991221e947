-- Ends a delivery as failed, with a notice unless an operator has caused it. Expired deliveries get no notice here: the
-- caller ends many at once and sends one notice for all of an address.
--@include delivery-key
--@include status
--@include notify
--@include outcome

local function fail(id, st, sub, created, reason, nowMs, expiresAtMs, retentionMs)
  local key = deliveryKey(id)
  call('HSET', key, 'st', FAILED, 'f', nowMs, 'r', reason)
  call('HDEL', key, 'x', 'd')
  call('PEXPIREAT', key, expiresAtMs)
  call('PEXPIREAT', KEY_RESPONSES .. id, expiresAtMs)
  move(id, created, st, FAILED)
  local failed = KEY_FAILED .. sub
  call('ZADD', failed, created, id)
  local expired = call('ZCOUNT', failed, '-inf', nowMs - 2 * retentionMs - GRACE_MS)
  if expired > 0 then call('ZREMRANGEBYRANK', failed, 0, math.min(expired, MAX_TRIMMED) - 1) end
  call('PEXPIREAT', failed, expiresAtMs)
  local replayId = call('HGET', key, 'b')
  if replayId then countOutcome(replayId, id, reason == REASON_CANCELLED and 'cancelled' or 'failed') end
  local isSilent = reason == REASON_SUBSCRIPTION_DELETED or reason == REASON_CANCELLED or reason == REASON_ERASED
    or reason == REASON_EXPIRED
  if not isSilent then
    notify(nowMs, NOTICE_DELIVERY_FAILED, 's', sub, 'd', id, 'w', reason)
  end
end
