-- Stores events, each unless its id is taken in its environment, and makes their deliveries with the first jobs: all
-- that Redis has to do for most events, in one step for several. The events may be of several partitions; those of one
-- follow one another. `home` is its prefix, empty if it is that of the call. `deliveryHome` is the prefix of a
-- delivery's partition, empty if it is the event's. `topicsHome` is that of the partition whose version of the topics
-- the events were matched with.
-- An event whose reference begins with a slash becomes a joint record, which has its only delivery too: the expiry
-- follows from the delivery's end. `other` is the reference of the event's other form, where its id may have been used
-- before.
-- Returns one of these for each event:
--   a text with a letter for the state of each delivery
--   {the event stored before}, with 'other' if it is stored under that reference
--   {'outdated'} if the topics have changed since the event was matched: nothing is stored of it
--@include make
--@include first-job
--@include event-text
--@include error-text

local own, reply, currentTopics = prefix, {}, nil
local function areOutdated(topicsVersion)
  if topicsVersion == '' then return false end
  if not currentTopics then
    prefix = topicsHome
    currentTopics = call('GET', KEY_TOPICS_VERSION) or '0'
  end
  return topicsVersion ~= currentTopics
end

indexed = {}
local _, problem = pcall(function()
  for home, partition, topicsVersion, slice, searchUntilMs, eventCount in partitions do
    local eventPrefix = home ~= '' and home or own
    local isOutdated = areOutdated(topicsVersion)
    for _ = 1, tonumber(eventCount) do
      local event, kind, nowMs, text, expiresAtMs, other, isPart, terms, entry, deliveryCount = events()
      prefix = eventPrefix
      local key, asJoint = KEY_EVENT .. event, string.sub(event, 1, 1) == '/'
      local kept = isOutdated and {'outdated'}
      if not kept and other ~= '' and call('EXISTS', KEY_EVENT .. other) == 1 then
        kept = {call(asJoint and 'GET' or 'HGETALL', KEY_EVENT .. other), 'other'}
      end
      if not kept then
        if asJoint then
          -- The delivery's record will be that of the event.
          kept = call('EXISTS', key) == 1 and {call('HGETALL', key)}
        else
          kept = not call('SET', key, text, 'NX', 'PXAT', expiresAtMs) and {call('GET', key)}
        end
      end
      local states, fields = '', asJoint and not kept and textFields(text) or nil
      if not kept then
        if isPart ~= '' then call('ZADD', KEY_FANNING_OUT, nowMs, event) end
        -- Six characters for each term: two of its list, and its mark. All entries of a list are of one slice of time,
        -- so it expires as a whole.
        for i = 1, #terms, 6 do
          local list = KEY_SEARCH .. slice .. string.sub(terms, i, i + 1)
          if call('RPUSH', list, string.sub(terms, i + 2, i + 5) .. entry) == 1 then call('PEXPIREAT', list, searchUntilMs) end
        end
      end
      for _ = 1, tonumber(deliveryCount) do
        local subscriptionId, deliveryId, deliveryHome = deliveries()
        if not kept then
          -- Everything below uses the keys of this partition.
          prefix = deliveryHome ~= '' and deliveryHome or eventPrefix
          local state = make(subscriptionId, deliveryId, event, deliveryHome ~= '' and partition, kind, nowMs, oldestMs, lifeMs, '', fields)
          if state == 'pending' then
            addFirstJob(deliveryId, subscriptionId, storedFormat < COMPACT_FORMAT and event, nowMs, true)
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
-- What was made before something failed is complete too, and what fails in one partition stops no other.
local indexProblem, queueProblem = addToIndexes(), addToQueues()
problem = problem or indexProblem or queueProblem
return problem and redis.error_reply(errorText(problem)) or reply
