-- Holds a delivery that was not to be sent to its address when the worker looked, if it still is not. Returns 1 where
-- the delivery is held now, 0 where the job must look again.
--@include delivery-key
--@include put-on-hold
--@include may-pass

local found = call('HMGET', deliveryKey(id), 'st', 'g', 'c', 'k')
if not found[1] or isFinished(found[1]) or (found[2] or '0') ~= generation then return 0 end
local address = call('HMGET', KEY_SUBSCRIPTION .. subscriptionId, 'status', 'trial')
if not address[1] or address[1] == DELETED or mayPass(address[1], address[2], id, found[4]) then return 0 end
if found[1] ~= HELD then putOnHold(id, subscriptionId, found[3], found[1]) end
return 1
