-- Moves a delivery whose attempt is overdue into the overdue lane, so that its job can go. Returns 'overdue';
-- 'not_overdue': it is left as it is; or 'superseded': it has another job or ended.
--@include delivery-key
--@include park

local found = call('HMGET', deliveryKey(id), 'st', 'g', 'c', 'x')
local lane = park(id, generation, subscriptionId, found[1], found[2], found[3], found[4], nowMs, dueBeforeMs, true)
addToLanes()
return lane
