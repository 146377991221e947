--@include delivery-key
--@include append
--@include may-pass

-- Makes a delivery that does not exist yet. Returns 'pending' (its first job must be added), 'held', 'alreadyQueued' (it is parked), or
-- 'none' (its subscription is gone, nothing was made).
local function make(sub, id, event, kind, nowMs, oldestMs, lifeMs, replayOf)
  local key = deliveryKey(id)
  local status = call('HGET', KEY_SUBSCRIPTION .. sub, 'status')
  if not status or status == DELETED then return 'none' end
  local st = mayPass(status, false, id, kind) and PENDING or HELD
  call('HSET', key, 's', sub, 'k', kind, 'st', st, 'n', 0, 'c', nowMs)
  if not isJoint(id) then call('HSET', key, 'e', event) end
  if replayOf ~= '' then call('HSET', key, 'o', replayOf) end
  call('ZADD', st == PENDING and INDEX_PENDING or INDEX_HELD, nowMs, id)
  local stream = KEY_BY_SUBSCRIPTION .. sub
  -- The stream's name says how the id begins.
  append(stream, nowMs, oldestMs, 'd', storedFormat >= COMPACT_FORMAT and string.sub(id, 10) or id)
  call('PEXPIRE', stream, lifeMs)
  if st == HELD then
    call('ZADD', KEY_HELD .. sub, nowMs, id)
    return 'held'
  end
  -- Where many deliveries wait for a slot already, one more job in the queue would only delay other addresses.
  local parked = KEY_PARKED .. sub
  if call('ZCARD', parked) < PARK_NEW_FROM then return 'pending' end
  call('ZADD', parked, nowMs, id)
  return 'alreadyQueued'
end
