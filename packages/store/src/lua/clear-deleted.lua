-- Clears away a deleted subscription whose deliveries have all ended since this deletion, unless it was created again under its key meanwhile, and perhaps
-- deleted again: then somebody else has cleared it. What retention keeps of its deliveries expires by itself, at the latest after `lifeMs`.
local key = KEY_SUBSCRIPTION .. id
local found = call('HMGET', key, 'status', 'deletion')
if found[1] and (found[1] ~= DELETED or (found[2] or '') ~= deletion) then return end
call('SREM', KEY_RELEASE_HELD, id)
call('SREM', KEY_RELEASE_PARKED, id)
call('SREM', KEY_RELEASE_OVERDUE, id)
call('DEL', key, KEY_HELD .. id, KEY_PARKED .. id, KEY_OVERDUE .. id)
call('SREM', KEY_CLOSING, id)
call('PEXPIRE', KEY_BY_SUBSCRIPTION .. id, lifeMs)
