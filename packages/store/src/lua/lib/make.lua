-- Makes deliveries: their records, and their entries in indexes, streams and lanes. The script adds the first jobs.
--@include delivery-key
--@include append
--@include count-parked
--@include may-pass

-- What this run of the script has done before, because several deliveries may be for the same address. By subscription:
-- the statuses that it has read, and the streams whose expiry it has checked. By partition: whether deliveries of any
-- address are parked.
local statuses, streams, mayBeParked = {}, {}, {}

-- If the script sets this to {}, entries of the indexes by status are collected here, and addToIndexes adds them.
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

-- Adds the collected entries. An error in one index does not affect the others. Returns the first error, or nil.
local function addToIndexes()
  local problem
  for _, key in ipairs(indexed) do
    local isAdded, why = pcall(call, 'ZADD', key, unpack(indexed[key]))
    if not isAdded then problem = problem or why end
  end
  return problem
end

-- Adds a delivery to the stream of its address. Trims the stream and extends its expiry only once an hour
-- (STREAM_LOOK_MS), because reading the expiry costs less than writing it. Redis removes about 10,000 entries at most
-- with one command: where it has removed some, the next delivery removes more, until none is left.
local function addToStream(sub, nowMs, oldestMs, lifeMs, entry)
  local stream = KEY_BY_SUBSCRIPTION .. sub
  append(stream, nowMs, nil, 'd', entry)
  if streams[sub] then return end
  streams[sub] = true
  local leftMs = call('PTTL', stream) - lifeMs
  if leftMs >= 0 and leftMs <= STREAM_LOOK_MS then return end
  if call('XTRIM', stream, 'MINID', '~', oldestMs) > 0 then return end
  call('PEXPIRE', stream, lifeMs + STREAM_LOOK_MS)
end

-- Returns the same as countParked, without a command for each address while no delivery of any address is parked.
local function countIfAnyParked(sub)
  if mayBeParked[prefix] == nil then mayBeParked[prefix] = call('EXISTS', KEY_RELEASE_PARKED) == 1 end
  return mayBeParked[prefix] and countParked(sub) or 0
end

-- Makes a delivery. One that exists is replaced: it has outlived an event that had the same id. Returns 'pending' (the
-- caller must add its first job), 'held', 'without_first_job' (it is parked), or 'none' (its subscription is gone,
-- nothing was made); and the id of the first job. `fields`: names and values to add to a joint record.
-- `eventPartition`: the number of the event's partition, or false if it is this one.
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
  local key, jobId = deliveryKey(id), id
  -- These fields come first because they are read most: Redis searches a compact hash from its beginning. If one was
  -- there, so was the delivery: they are written again after it is forgotten.
  while call('HSET', key, 's', sub, 'k', kind, 'st', st, 'n', 0, 'c', nowMs, unpack(more)) < 5 + #more / 2 do
    -- Included here because it is rarely needed, and each run of a script has to define its functions.
--@include forget
    forget(id, sub)
    jobId = id .. '.' .. call('HGET', key, 'g')
  end
  addToIndex(st == PENDING and INDEX_PENDING or INDEX_HELD, nowMs, id)
  -- The beginning of the id follows from the subscription, which is in the stream's key.
  addToStream(sub, nowMs, oldestMs, lifeMs, storedFormat >= COMPACT_FORMAT and string.sub(id, DELIVERY_PREFIX + 1) or id)
  if st == HELD then
    call('ZADD', KEY_HELD .. sub, nowMs, id)
    return 'held'
  end
  -- If many deliveries of the address already wait for a slot, another job in the queue would only delay other
  -- addresses.
  local count = countIfAnyParked(sub)
  if count < PARK_NEW_FROM then return 'pending', jobId end
  call('ZADD', KEY_PARKED .. sub, nowMs, id)
  parkedCounts[KEY_PARKED .. sub] = count + 1
  return 'without_first_job'
end
