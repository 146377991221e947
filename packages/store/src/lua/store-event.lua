-- Stores an event unless its id is taken in its environment, and makes deliveries of it with their first jobs. `home` is the prefix of a delivery's
-- partition, empty if it is the event's.
-- With `asJoint`, `eventKey` is that of a joint record, which has its only delivery too: the expiry follows from the delivery's end.
-- `otherKey` is the key of the event's other form, where its id may have been used before.
-- Returns {''} and the state of each delivery, or the event stored before (and 'unscoped' or 'other' if it is stored under that key), or
-- {'outdated'} where the topics have changed since the event was matched; then nothing is stored.
--@include make
--@include first-job
--@include event-text

if topicsVersion ~= '' and (call('GET', KEY_TOPICS_VERSION) or '0') ~= topicsVersion then return {'outdated'} end
local unscoped = unscopedKey ~= '' and call('GET', unscopedKey)
-- The text begins with the kind in base 36; its lowest digit in base 2 is the environment.
if unscoped and tonumber(string.match(unscoped, '^%w+'), 36) % 2 == kind % 2 then return {unscoped, 'unscoped'} end
if otherKey ~= '' and call('EXISTS', otherKey) == 1 then
  return {asJoint and call('GET', otherKey) or call('HGETALL', otherKey), 'other'}
end
if asJoint then
  if call('EXISTS', eventKey) == 1 then return {call('HGETALL', eventKey)} end
elseif not call('SET', eventKey, text, 'NX', 'PXAT', expiresAtMs) then
  return {call('GET', eventKey)}
end
if fanningOutKey ~= '' then call('ZADD', fanningOutKey, nowMs, event) end
-- Pairs of a list of the search index and an entry. All entries of a list are of one slice of time, so it expires as a whole.
for list, entry in string.gmatch(search, '(%S+) (%S+)') do
  local key = KEY_SEARCH .. list
  if call('RPUSH', key, entry) == 1 then call('PEXPIREAT', key, searchUntilMs) end
end
local reply, eventPrefix = {''}, prefix
for subscriptionId, deliveryId, home in deliveries do
  -- Everything below uses the keys of this partition.
  prefix = home ~= '' and home or eventPrefix
  local state = make(subscriptionId, deliveryId, event, kind, nowMs, oldestMs, lifeMs, '')
  if state == 'pending' then addFirstJob(deliveryId, subscriptionId, storedFormat < COMPACT_FORMAT and event, nowMs, home ~= '' and eventPartition) end
  if asJoint then
    -- The fields of the delivery come first: they are read most.
    if state == 'none' then call('HSET', eventKey, 'k', kind, 'c', nowMs) end
    call('HSET', eventKey, unpack(textFields(text)))
    if state == 'none' then call('PEXPIREAT', eventKey, expiresAtMs) end
  end
  reply[#reply + 1] = state
end
return reply
