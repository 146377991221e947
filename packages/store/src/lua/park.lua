-- Parks a delivery that has no free slot, so that its job can go. If the attempt is overdue, the delivery goes into the overdue lane, which
-- is released at a fixed rate: many are overdue at once when Redis, the workers or their network were away. A retry is overdue if it has
-- been due for longer than `overdueAfterMs`; so is whatever was due before `dueBeforeMs`, the end of an outage. A first attempt (it has no
-- x) is due when its delivery is created. While the lane is not empty, a retry is overdue after `missedAfterMs`: otherwise those released
-- while workers were busy would all be sent at once. With `onlyOverdue`, a delivery that is not overdue is left as it is.
-- Returns 'parked', 'overdue', 'not_overdue' if it was left, or 'superseded' if the delivery has another job or ended.
--@include delivery-key
--@include status

local found = call('HMGET', deliveryKey(id), 'st', 'g', 'c', 'x')
local st, created, retryMs = found[1], found[3], tonumber(found[4])
if not st or isFinished(st) or st == HELD or (found[2] or '0') ~= generation then return 'superseded' end
local lane = KEY_OVERDUE .. subscriptionId
local afterMs = call('EXISTS', lane) == 1 and missedAfterMs or overdueAfterMs
if retryMs and nowMs - retryMs > afterMs or (retryMs or tonumber(created)) < dueBeforeMs then
  call('ZADD', lane, created, id)
  call('SADD', KEY_RELEASE_OVERDUE, subscriptionId)
  return 'overdue'
end
if onlyOverdue then return 'not_overdue' end
call('ZADD', KEY_PARKED .. subscriptionId, created, id)
call('SADD', KEY_RELEASE_PARKED, subscriptionId)
return 'parked'
