--@include delivery-key
--@include append
--@include may-pass

-- What a script has read of addresses, and the streams that it has prolonged: several deliveries of a script may be for the same address.
local statuses, parkedCounts, prolonged = {}, {}, {}

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
-- 'none' (its subscription is gone, nothing was made). A joint record gets `fields` too, a list of names and values.
local function make(sub, id, event, kind, nowMs, oldestMs, lifeMs, replayOf, fields)
  local address = KEY_SUBSCRIPTION .. sub
  local status = statuses[address]
  if status == nil then
    status = call('HGET', address, 'status')
    statuses[address] = status
  end
  if not status or status == DELETED then return 'none' end
  local st = mayPass(status, false, id, kind) and PENDING or HELD
  local more = isJoint(id) and (fields or {}) or {'e', event}
  if replayOf ~= '' then
    more[#more + 1] = 'o'
    more[#more + 1] = replayOf
  end
  -- The fields of the delivery come first: they are read most.
  call('HSET', deliveryKey(id), 's', sub, 'k', kind, 'st', st, 'n', 0, 'c', nowMs, unpack(more))
  addToIndex(st == PENDING and INDEX_PENDING or INDEX_HELD, nowMs, id)
  local stream = KEY_BY_SUBSCRIPTION .. sub
  -- The stream's name says how the id begins.
  append(stream, nowMs, oldestMs, 'd', storedFormat >= COMPACT_FORMAT and string.sub(id, 10) or id)
  if not prolonged[stream] then
    call('PEXPIRE', stream, lifeMs)
    prolonged[stream] = true
  end
  if st == HELD then
    call('ZADD', KEY_HELD .. sub, nowMs, id)
    return 'held'
  end
  -- Where many deliveries wait for a slot already, one more job in the queue would only delay other addresses.
  local parked = KEY_PARKED .. sub
  local count = parkedCounts[parked] or call('ZCARD', parked)
  parkedCounts[parked] = count
  if count < PARK_NEW_FROM then return 'pending' end
  call('ZADD', parked, nowMs, id)
  parkedCounts[parked] = count + 1
  return 'alreadyQueued'
end
