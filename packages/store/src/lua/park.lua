-- Parks a delivery that has no free slot, so that its job can go. If the attempt is overdue, the delivery goes into the
-- overdue lane, which is released at a fixed rate: many are overdue at once when Redis, the workers or their network
-- were away. A retry is overdue if it has been due for longer than OVERDUE_AFTER_MS; so is whatever was due before
-- `dueBeforeMs`, the end of an outage. A first attempt (it has no x) is due when its delivery is created. While the
-- lane is not empty, a retry is overdue after MISSED_AFTER_MS: otherwise those released while workers were busy would
-- all be sent at once. With `onlyOverdue`, a delivery that is not overdue is left as it is.
--@include delivery-key
--@include park

local found = call('HMGET', deliveryKey(id), 'st', 'g', 'c', 'x')
local lane = park(id, generation, subscriptionId, found[1], found[2], found[3], found[4], nowMs, dueBeforeMs, onlyOverdue)
addToLanes()
return lane
