-- Parks a delivery whose address has no free slot, so that its job can go; but a late retry whose turn is still to come keeps its job.
-- Returns 1 where it is parked, 0 where the job is not the delivery's any more, else when the job is due.
--@include status
--@include pace

local found = call('HMGET', KEY_DELIVERY .. id, 'st', 'g', 'c', 'x')
if not found[1] or isFinished(found[1]) or found[1] == HELD or (found[2] or '0') ~= generation then return 0 end
local dueAtMs = pace(id, subscriptionId, found[4], found[3], nowMs, missedMs, lateMs, everyMs, dueBeforeMs)
if dueAtMs > nowMs then return dueAtMs end
call('ZADD', KEY_PARKED .. subscriptionId, found[3], id)
call('SADD', KEY_RELEASE_PARKED, subscriptionId)
return 1
