-- Clears away a deleted subscription whose deliveries have all ended, unless it was created again under its key meanwhile: then somebody else has
-- cleared it. What retention keeps of its deliveries expires by itself, at the latest after `lifeMs`.
local key = KEY_SUBSCRIPTION .. id
local status = call('HGET', key, 'status')
if status and status ~= DELETED then return end
call('SREM', KEY_RELEASE_HELD, id)
call('SREM', KEY_RELEASE_PARKED, id)
call('SREM', KEY_RELEASE_OVERDUE, id)
call('DEL', key, KEY_HELD .. id, KEY_PARKED .. id, KEY_OVERDUE .. id)
call('SREM', KEY_CLOSING, id)
call('PEXPIRE', KEY_BY_SUBSCRIPTION .. id, lifeMs)
