-- Takes up to `limit` deliveries out of a lane, oldest first. Each gets a new generation, whose job the caller adds next (if it does not,
-- the rescue of lost jobs does). Nothing leaves the held lane unless the address is active. Deliveries in another lane of an address that
-- is not active are held from now on, and returned with the generation HELD_NOW, except its trial and test deliveries (lib/may-pass.lua). An overdue one is due at `dueAtMs`, so its next attempt
-- is not overdue again; but if a slow worker has recorded an attempt meanwhile, the retry keeps its later time.
-- Returns (delivery, generation, event, attempts recorded)…
--@include delivery-key
--@include status
--@include may-pass

local address = call('HMGET', KEY_SUBSCRIPTION .. subscriptionId, 'status', 'trial')
local status = address[1]
local holdsOthers = lane ~= LANE_HELD and status and status ~= ACTIVE and status ~= DELETED
if lane == LANE_HELD and status ~= ACTIVE then
  call('SREM', indexKey, subscriptionId)
  return {}
end
local released = {}
for _, id in ipairs(call('ZRANGE', laneKey, 0, (holdsOthers and HOLD_CHUNK or limit) - 1)) do
  local key = deliveryKey(id)
  local found = call('HMGET', key, 'st', 'n', 'c', 'e', 'x', 'k')
  local st, attempts, created = found[1], found[2], found[3]
  if st and not isFinished(st) then
    local hold = holdsOthers and not mayPass(status, address[2], id, found[6])
    released[#released + 1] = id
    if hold then
      call('HSET', key, 'st', HELD)
      call('HDEL', key, 'x')
      move(id, created, st, HELD)
      call('ZADD', KEY_HELD .. subscriptionId, created, id)
      released[#released + 1] = HELD_NOW
    else
      released[#released + 1] = tostring(call('HINCRBY', key, 'g', 1))
      if lane == LANE_OVERDUE and (tonumber(found[5]) or 0) < dueAtMs then call('HSET', key, 'x', dueAtMs) end
    end
    released[#released + 1] = eventOf(id, found[4])
    released[#released + 1] = attempts
    if st == HELD and not hold then
      local resumed = attempts == '0' and PENDING or WAITING_FOR_RETRY
      call('HSET', key, 'st', resumed)
      move(id, created, HELD, resumed)
    end
  end
  call('ZREM', laneKey, id)
end
if call('EXISTS', laneKey) == 0 then call('SREM', indexKey, subscriptionId) end
return released
