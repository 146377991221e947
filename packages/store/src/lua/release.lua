-- Takes up to `limit` deliveries out of a lane, oldest first. Each gets a new generation, whose job the caller adds next (if it does not,
-- the search for lost jobs does). Nothing leaves the held lane unless the address is active. Deliveries parked at an address that is not
-- active are held from now on, and returned with the generation HELD_NOW.
-- Returns (delivery, generation, event, attempts recorded)…
--@include status

local lane = (isParked and KEY_PARKED or KEY_HELD) .. subscriptionId
local index = isParked and KEY_RELEASE_PARKED or KEY_RELEASE_HELD
local status = call('HGET', KEY_SUBSCRIPTION .. subscriptionId, 'status')
local hold = isParked and status and status ~= ACTIVE and status ~= DELETED
if not isParked and status ~= ACTIVE then
  call('SREM', index, subscriptionId)
  return {}
end
local released = {}
for _, id in ipairs(call('ZRANGE', lane, 0, (hold and HOLD_CHUNK or limit) - 1)) do
  local key = KEY_DELIVERY .. id
  local found = call('HMGET', key, 'st', 'n', 'c', 'e')
  local st, attempts, created = found[1], found[2], found[3]
  if st and not isFinished(st) then
    released[#released + 1] = id
    if hold then
      call('HSET', key, 'st', HELD)
      call('HDEL', key, 'x')
      move(id, created, st, HELD)
      call('ZADD', KEY_HELD .. subscriptionId, created, id)
      released[#released + 1] = HELD_NOW
    else
      released[#released + 1] = tostring(call('HINCRBY', key, 'g', 1))
    end
    released[#released + 1] = found[4]
    released[#released + 1] = attempts
    if st == HELD and not hold then
      local resumed = attempts == '0' and PENDING or WAITING
      call('HSET', key, 'st', resumed)
      move(id, created, HELD, resumed)
    end
  end
  call('ZREM', lane, id)
end
if call('EXISTS', lane) == 0 then call('SREM', index, subscriptionId) end
return released
