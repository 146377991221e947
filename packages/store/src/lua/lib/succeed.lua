-- Ends a delivery as succeeded, with its last attempt. `found` has the delivery's fields st, n, s, c, x, b. Returns
-- whether the delivery was the trial of a resume.
--@include delivery-key
--@include address
--@include list-succeeded
--@include outcome

local function succeed(id, found, number, attempt, expiresAtMs, maxAttempts, response, responsesUntilMs, endedAtMs)
  local key, st, sub = deliveryKey(id), found[1], found[3]
  call('HSET', key, 'st', SUCCEEDED, 'n', number, 'a' .. number, attempt)
  if st == HELD then call('ZREM', KEY_HELD .. sub, id) end
  if found[5] then call('HDEL', key, 'x', 'd') end
  if maxAttempts ~= '' then call('HSET', key, 'm', maxAttempts) end
  call('PEXPIREAT', key, expiresAtMs)
  if responsesUntilMs ~= '' then
    if response ~= '' then call('HSET', KEY_RESPONSES .. id, number, response) end
    call('PEXPIREAT', KEY_RESPONSES .. id, responsesUntilMs)
  end
  listSucceeded(id, found[4], endedAtMs)
  call('ZREM', st == PENDING and INDEX_PENDING or st == WAITING_FOR_RETRY and INDEX_WAITING_FOR_RETRY or INDEX_HELD, id)
  if found[6] then countOutcome(found[6], id, 'delivered') end
  local address = readAddress(sub)
  if address.failures and address.failures ~= '0' then
    call('HSET', address.key, 'consecutive_failures', 0)
    address.failures = '0'
  end
  return address.status == RESUMING and address.trial == id
end
