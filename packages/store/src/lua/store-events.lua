-- Stores events and makes their deliveries with the first jobs: all that Redis has to do for most events, with one call
-- for several events. It is one script so that an id is taken once, and no event or delivery is stored without its
-- jobs. An event whose id is taken in its environment is not stored.
-- The events may be of several partitions; those of one partition follow one another. These arguments are key prefixes:
--   home          of the event's partition
--   deliveryHome  of the delivery's partition, empty for that of the event
--   topicsHome    of the partition whose version of the topics the events were matched with
-- An event whose reference begins with a slash is stored as a joint record, together with its only delivery: its expiry
-- follows from the end of the delivery. `other` is the reference of the event's other form, empty if its id is new.
-- Returns for each event one of these:
--   a text with a letter for the state of each delivery
--   {the event stored before (see keptText)}, with 'other' if it is stored under that reference
--   {'outdated'} if the topics have changed since the event was matched: nothing is stored of it
--@include event-text
--@include make
--@include first-job
--@include end-making

local reply, currentTopics = {}, nil
local function areOutdated(topicsVersion)
  if topicsVersion == '' then return false end
  if not currentTopics then
    prefix = topicsHome
    currentTopics = call('GET', KEY_TOPICS_VERSION) or '0'
  end
  return topicsVersion ~= currentTopics
end

-- Returns the text of a stored event. If its data are long, and the new event's have another length, the content is
-- another one too: then only what is before the data. Otherwise a small repeat of a large event would cost ingest its
-- parsing, and Redis 2 ms for each MiB.
local function keptText(key, newText)
  local size, head, dataAt = call('STRLEN', key), '', nil
  if size > MAX_EVENT_AT_ONCE then
    -- More than once only if hundreds of subscriptions are before the data.
    local toRead = MAX_EVENT_AT_ONCE
    repeat
      head = call('GETRANGE', key, 0, toRead - 1)
      dataAt = string.find(head, '\n', 1, true)
      toRead = 2 * toRead
    until dataAt or #head == size
    local length, newLength = size - (dataAt or size), #newText - string.find(newText, '\n', 1, true)
    if length > MAX_EVENT_AT_ONCE and length ~= newLength then return string.sub(head, 1, dataAt) end
  end
  return call('GET', key)
end

indexed = {}
-- One nested loop: in functions, it takes 2 to 3 % more of Redis's time for an event.
local _, problem = pcall(function()
  for home, partition, topicsVersion, slice, searchUntilMs, eventCount in partitions do
    local isOutdated = areOutdated(topicsVersion)
    for _ = 1, tonumber(eventCount) do
      local event, kind, nowMs, text, expiresAtMs, other, isPart, terms, entry, deliveryCount = events()
      prefix = home
      local key, asJoint = KEY_EVENT .. event, string.sub(event, 1, 1) == '/'
      local kept = isOutdated and {'outdated'}
      if not kept and other ~= '' and call('EXISTS', KEY_EVENT .. other) == 1 then
        kept = {asJoint and keptText(KEY_EVENT .. other, text) or call('HGETALL', KEY_EVENT .. other), 'other'}
      end
      if not kept then
        if asJoint then
          -- Nothing is written yet: `make` writes the event's text into the delivery's record.
          kept = call('EXISTS', key) == 1 and {call('HGETALL', key)}
        else
          kept = not call('SET', key, text, 'NX', 'PXAT', expiresAtMs) and {keptText(key, text)}
        end
      end
      local states, fields = '', asJoint and not kept and textFields(text) or nil
      if not kept then
        if isPart ~= '' then call('ZADD', KEY_FANNING_OUT, nowMs, event) end
        -- Each term takes six characters: two name its list, four are its mark. All entries of a list are of
        -- one slice of time, so the list expires as a whole.
        for i = 1, #terms, 6 do
          local list = KEY_SEARCH .. slice .. string.sub(terms, i, i + 1)
          if call('RPUSH', list, string.sub(terms, i + 2, i + 5) .. entry) == 1 then call('PEXPIREAT', list, searchUntilMs) end
        end
      end
      for _ = 1, tonumber(deliveryCount) do
        local subscriptionId, deliveryId, deliveryHome = deliveries()
        if not kept then
          -- Everything below uses the keys of this partition.
          prefix = deliveryHome ~= '' and deliveryHome or home
          local state, jobId = make(subscriptionId, deliveryId, event, deliveryHome ~= '' and partition, kind, nowMs, oldestMs, lifeMs, '', fields)
          if state == 'pending' then
            addFirstJob(jobId, subscriptionId, storedFormat < COMPACT_FORMAT and event, nowMs, true)
          elseif state == 'none' and asJoint then
            call('HSET', key, 'k', kind, 'c', nowMs, unpack(fields))
            call('PEXPIREAT', key, expiresAtMs)
          end
          states = states .. string.sub(state, 1, 1)
        end
      end
      reply[#reply + 1] = kept or states
    end
  end
end)
return endMaking(problem, reply)
