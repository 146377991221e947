-- Moves a delivery whose attempt is overdue into the overdue lane; the caller then ends its job. It is one script so
-- that the delivery does not move elsewhere between the check and the change. Returns 'overdue', 'not_overdue' (nothing
-- changed) or 'superseded' (it has another job, or has ended).
--@include delivery-key
--@include park

local found = call('HMGET', deliveryKey(id), 'st', 'g', 'c', 'x')
local lane = park(id, generation, subscriptionId, found[1], found[2], found[3], found[4], nowMs, dueBeforeMs, true)
addToLanes()
return lane
