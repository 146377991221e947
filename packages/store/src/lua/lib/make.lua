--@include delivery-key
--@include append
--@include may-pass

-- What a script has read of addresses, and the streams that it has trimmed and prolonged, by subscription: several deliveries of a script may be for the
-- same address.
local statuses, parkedCounts, streams = {}, {}, {}

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

local function addToIndexes()
  for _, key in ipairs(indexed) do call('ZADD', key, unpack(indexed[key])) end
end

-- Makes a delivery that does not exist yet. Returns 'pending' (its first job must be added), 'held', 'alreadyQueued' (it is parked), or
-- 'none' (its subscription is gone, nothing was made). A joint record gets `fields` too, a list of names and values. `eventPartition`: where a script may
-- read the event, if that is another partition, or false.
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
  local entry = storedFormat >= COMPACT_FORMAT and string.sub(id, 10) or id
  local stream = streams[sub]
  if stream then
    append(stream, nowMs, nil, 'd', entry)
  else
    stream = KEY_BY_SUBSCRIPTION .. sub
    append(stream, nowMs, oldestMs, 'd', entry)
    call('PEXPIRE', stream, lifeMs)
    streams[sub] = stream
  end
  if st == HELD then
    call('ZADD', KEY_HELD .. sub, nowMs, id)
    return 'held'
  end
  -- Where many deliveries wait for a slot already, one more job in the queue would only delay other addresses.
  local count = parkedCounts[sub] or call('ZCARD', KEY_PARKED .. sub)
  parkedCounts[sub] = count
  if count < PARK_NEW_FROM then return 'pending' end
  call('ZADD', KEY_PARKED .. sub, nowMs, id)
  parkedCounts[sub] = count + 1
  return 'alreadyQueued'
end
