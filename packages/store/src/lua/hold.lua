-- Holds a delivery whose address is not active, if that is still so and the job's `generation` is the current one. It
-- is one script because a delivery that is held just after its address became active would never be released. Returns 1
-- if the delivery is held now, 0 if the worker must read delivery and address again.
--@include status
--@include delivery-key
--@include put-on-hold
--@include may-pass

local found = call('HMGET', deliveryKey(id), 'st', 'g', 'c', 'k')
if not found[1] or isFinished(found[1]) or (found[2] or '0') ~= generation then return 0 end
local address = call('HMGET', KEY_SUBSCRIPTION .. subscriptionId, 'status', 'trial')
if not address[1] or address[1] == DELETED or mayPass(address[1], address[2], id, found[4]) then return 0 end
if found[1] ~= HELD then
  putOnHold(id, subscriptionId, found[3], found[1])
  -- It is in one of these lanes if a worker parked it and died before it ended the job.
  call('ZREM', KEY_PARKED .. subscriptionId, id)
  call('ZREM', KEY_OVERDUE .. subscriptionId, id)
end
return 1
