-- Stores an event unless its id is taken in its environment, and makes deliveries of it with their first jobs. `home` is the prefix of a delivery's
-- partition, empty if it is the event's.
-- Returns {''} and the state of each delivery, or the text stored before (and 'unscoped' if it is stored under its unscoped key), or
-- {'outdated'} where the topics have changed since the event was matched; then nothing is stored.
--@include make
--@include first-job

if topicsVersion ~= '' and (call('GET', KEY_TOPICS_VERSION) or '0') ~= topicsVersion then return {'outdated'} end
local unscoped = unscopedKey ~= '' and call('GET', unscopedKey)
-- The text begins with the kind in base 36; its lowest digit in base 2 is the environment.
if unscoped and tonumber(string.match(unscoped, '^%w+'), 36) % 2 == kind % 2 then return {unscoped, 'unscoped'} end
if not call('SET', eventKey, text, 'NX', 'PXAT', expiresAtMs) then return {call('GET', eventKey)} end
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
  if state == 'pending' then addFirstJob(deliveryId, subscriptionId, event, nowMs, home ~= '' and eventPartition) end
  reply[#reply + 1] = state
end
return reply
