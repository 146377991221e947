-- Stores events of several partitions, each unless its id is taken in its environment, and makes deliveries of it with their first jobs: all that Redis has to
-- do for most events, in one step for several. Those of a partition follow one another; `home` is its prefix, empty if it is that of the call.
-- `deliveryHome` is the prefix of a delivery's partition, empty if it is the event's.
-- An event whose reference begins with a slash becomes a joint record, which has its only delivery too: the expiry follows from the delivery's end. `other`
-- is the reference of the event's other form, and `unscoped` that of an earlier one, where its id may have been used before.
-- Returns for each event a letter for the state of each delivery, or {the event stored before} (and 'unscoped' or 'other' if it is stored under that
-- reference), or {'outdated'} where the topics have changed since the event was matched; then nothing is stored of it.
--@include make
--@include first-job
--@include event-text

-- The event that has the id of another one.
local function keptBefore(event, kind, other, unscoped, asJoint)
  local text = unscoped ~= '' and call('GET', KEY_EVENT .. unscoped)
  -- The text begins with the kind in base 36; its lowest digit in base 2 is the environment.
  if text and tonumber(string.match(text, '^%w+'), 36) % 2 == kind % 2 then return {text, 'unscoped'} end
  if other ~= '' and call('EXISTS', KEY_EVENT .. other) == 1 then
    return {asJoint and call('GET', KEY_EVENT .. other) or call('HGETALL', KEY_EVENT .. other), 'other'}
  end
end

-- Stores an event. Returns the one that has its id, or nil.
local function store(event, kind, text, expiresAtMs, other, unscoped, asJoint)
  local kept = keptBefore(event, kind, other, unscoped, asJoint)
  if kept then return kept end
  local key = KEY_EVENT .. event
  if asJoint then
    -- The delivery's record is that of the event.
    if call('EXISTS', key) == 1 then return {call('HGETALL', key)} end
  elseif not call('SET', key, text, 'NX', 'PXAT', expiresAtMs) then
    return {call('GET', key)}
  end
end

-- `terms` has six characters for each term: two of its list, and its mark. All entries of a list are of one slice of time, so it expires as a whole.
local function index(slice, terms, entry, untilMs)
  for i = 1, #terms, 6 do
    local key = KEY_SEARCH .. slice .. string.sub(terms, i, i + 1)
    if call('RPUSH', key, string.sub(terms, i + 2, i + 5) .. entry) == 1 then call('PEXPIREAT', key, untilMs) end
  end
end

local own, reply = prefix, {}
for home, partition, topicsVersion, slice, searchUntilMs, eventCount in partitions do
  local eventPrefix = home ~= '' and home or own
  prefix = eventPrefix
  local isOutdated = topicsVersion ~= '' and (call('GET', KEY_TOPICS_VERSION) or '0') ~= topicsVersion
  for _ = 1, tonumber(eventCount) do
    local event, kind, nowMs, text, expiresAtMs, other, unscoped, isPart, terms, entry, deliveryCount = events()
    local asJoint = string.sub(event, 1, 1) == '/'
    prefix = eventPrefix
    local result = isOutdated and {'outdated'} or store(event, kind, text, expiresAtMs, other, unscoped, asJoint)
    local isNew = not result
    if isNew then
      if isPart ~= '' then call('ZADD', KEY_FANNING_OUT, nowMs, event) end
      index(slice, terms, entry, searchUntilMs)
      result = ''
    end
    local fields = isNew and asJoint and textFields(text) or nil
    for _ = 1, tonumber(deliveryCount) do
      local subscriptionId, deliveryId, deliveryHome = deliveries()
      if isNew then
        -- Everything below uses the keys of this partition.
        prefix = deliveryHome ~= '' and deliveryHome or eventPrefix
        local state = make(subscriptionId, deliveryId, event, kind, nowMs, oldestMs, lifeMs, '', fields)
        if state == 'pending' then
          addFirstJob(deliveryId, subscriptionId, storedFormat < COMPACT_FORMAT and event, nowMs, deliveryHome ~= '' and partition, true)
        elseif state == 'none' and asJoint then
          call('HSET', KEY_EVENT .. event, 'k', kind, 'c', nowMs, unpack(fields))
          call('PEXPIREAT', KEY_EVENT .. event, expiresAtMs)
        end
        result = result .. string.sub(state, 1, 1)
      end
    end
    reply[#reply + 1] = result
  end
end
return reply
