-- Holds a delivery whose address was not active when the worker looked, if it still is not. Returns 1 where the delivery is held now, 0
-- where the job must look again.
--@include status

local key = KEY_DELIVERY .. id
local found = call('HMGET', key, 'st', 'g', 'c')
if not found[1] or isFinished(found[1]) or (found[2] or '0') ~= generation then return 0 end
local status = call('HGET', KEY_SUBSCRIPTION .. subscriptionId, 'status')
if not status or status == DELETED or status == ACTIVE then return 0 end
if found[1] ~= HELD then
  call('HSET', key, 'st', HELD)
  call('HDEL', key, 'x')
  move(id, found[3], found[1], HELD)
  call('ZADD', KEY_HELD .. subscriptionId, found[3], id)
end
return 1
