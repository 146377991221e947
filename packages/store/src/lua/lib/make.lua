-- Makes deliveries: their records, and their entries in indexes, streams and lanes.
--@include delivery-key
--@include append
--@include count-parked
--@include may-pass

-- What a script has read of addresses, and the streams that it has looked after, by subscription: several deliveries of
-- a script may be for the same address. And whether deliveries of any address are parked, by partition.
local statuses, streams, mayBeParked = {}, {}, {}

-- Where a script has set this to {}, the entries of the indexes by status are added together, by addToIndexes.
local indexed

local function addToIndex(key, score, id)
  if not indexed then
    call('ZADD', key, score, id)
    return
  end
  if not indexed[key] then
    indexed[key] = {}
    indexed[#indexed + 1] = key
  end
  local entries = indexed[key]
  entries[#entries + 1] = score
  entries[#entries + 1] = id
end

-- An error in one index keeps nothing out of the others. Returns the first error.
local function addToIndexes()
  local problem
  for _, key in ipairs(indexed) do
    local isAdded, why = pcall(call, 'ZADD', key, unpack(indexed[key]))
    if not isAdded then problem = problem or why end
  end
  return problem
end

-- Adds a delivery to the stream of its address. The stream is trimmed, and its life prolonged, once an hour: a look at
-- how long it lives costs less than a write.
local function addToStream(sub, nowMs, oldestMs, lifeMs, entry)
  local stream = KEY_BY_SUBSCRIPTION .. sub
  append(stream, nowMs, nil, 'd', entry)
  if streams[sub] then return end
  streams[sub] = true
  local leftMs = call('PTTL', stream) - lifeMs
  if leftMs >= 0 and leftMs <= STREAM_LOOK_MS then return end
  call('XTRIM', stream, 'MINID', '~', oldestMs)
  call('PEXPIRE', stream, lifeMs + STREAM_LOOK_MS)
end

-- The same as countParked. Mostly no delivery of any address is parked.
local function countIfAnyParked(sub)
  if mayBeParked[prefix] == nil then mayBeParked[prefix] = call('EXISTS', KEY_RELEASE_PARKED) == 1 end
  return mayBeParked[prefix] and countParked(sub) or 0
end

-- Makes a delivery that does not exist yet. Returns 'pending' (its first job must be added), 'held', 'without_first_job'
-- (it is parked), or 'none' (its subscription is gone, nothing was made). A joint record gets `fields` too, a list of
-- names and values. `eventPartition`: where a script may read the event, if that is another partition, or false.
local function make(sub, id, event, eventPartition, kind, nowMs, oldestMs, lifeMs, replayOf, fields)
  local status = statuses[sub]
  if status == nil then
    status = call('HGET', KEY_SUBSCRIPTION .. sub, 'status')
    statuses[sub] = status
  end
  if not status or status == DELETED then return 'none' end
  local st = mayPass(status, false, id, kind) and PENDING or HELD
  local more = fields or isJoint(id) and {} or {'e', event}
  if replayOf ~= '' then
    more[#more + 1] = 'o'
    more[#more + 1] = replayOf
  end
  if eventPartition then
    more[#more + 1] = 'p'
    more[#more + 1] = eventPartition
  end
  -- The fields of the delivery come first: they are read most.
  call('HSET', deliveryKey(id), 's', sub, 'k', kind, 'st', st, 'n', 0, 'c', nowMs, unpack(more))
  addToIndex(st == PENDING and INDEX_PENDING or INDEX_HELD, nowMs, id)
  -- The stream's name says how the id begins.
  addToStream(sub, nowMs, oldestMs, lifeMs, storedFormat >= COMPACT_FORMAT and string.sub(id, 10) or id)
  if st == HELD then
    call('ZADD', KEY_HELD .. sub, nowMs, id)
    return 'held'
  end
  -- Where many deliveries wait for a slot already, one more job in the queue would only delay other addresses.
  local count = countIfAnyParked(sub)
  if count < PARK_NEW_FROM then return 'pending' end
  call('ZADD', KEY_PARKED .. sub, nowMs, id)
  parkedCounts[KEY_PARKED .. sub] = count + 1
  return 'without_first_job'
end
