-- Clears away a deleted subscription whose deliveries have all ended since this deletion. Does nothing if it was
-- created again under its key meanwhile, and perhaps deleted again: then another process has cleared it. The records of
-- its deliveries that retention keeps expire by themselves, at the latest after `lifeMs`.
--@include delivery-key

local key = KEY_SUBSCRIPTION .. id
local found = call('HMGET', key, 'status', 'deletion')
if found[1] and (found[1] ~= DELETED or (found[2] or '') ~= deletion) then return end
-- A failover may have undone the end of some. Without their lane nothing would release or end a held one; maintenance begins again.
for _, held in ipairs(call('ZRANGE', KEY_HELD .. id, 0, HOLD_CHUNK - 1)) do
  if call('HGET', deliveryKey(held), 'st') == HELD then return end
end
call('SREM', KEY_RELEASE_HELD, id)
call('SREM', KEY_RELEASE_PARKED, id)
call('SREM', KEY_RELEASE_OVERDUE, id)
call('UNLINK', key, KEY_HELD .. id, KEY_PARKED .. id, KEY_OVERDUE .. id)
call('SREM', KEY_CLOSING, id)
call('PEXPIRE', KEY_BY_SUBSCRIPTION .. id, lifeMs)
