-- Deletes the keys of a deleted subscription whose deliveries have all ended. It is one script because the subscription
-- may be created again under its key at any time: then, or if `deletion` does not name the latest deletion, it does
-- nothing. The records of its deliveries expire by themselves, and their list after `lifeMs`. Returns nothing.
--@include delivery-key

local key = KEY_SUBSCRIPTION .. id
local found = call('HMGET', key, 'status', 'deletion')
if found[1] and (found[1] ~= DELETED or (found[2] or '') ~= deletion) then return end
-- A failover may have undone the end of some deliveries. A held one would never end without its lane, so maintenance
-- has to go through them again.
for _, held in ipairs(call('ZRANGE', KEY_HELD .. id, 0, HOLD_CHUNK - 1)) do
  if call('HGET', deliveryKey(held), 'st') == HELD then return end
end
call('SREM', KEY_RELEASE_HELD, id)
call('SREM', KEY_RELEASE_PARKED, id)
call('SREM', KEY_RELEASE_OVERDUE, id)
call('UNLINK', key, KEY_HELD .. id, KEY_PARKED .. id, KEY_OVERDUE .. id)
call('SREM', KEY_CLOSING, id)
call('PEXPIRE', KEY_BY_SUBSCRIPTION .. id, lifeMs)
