-- Parks a delivery that has no free slot, so that its job can go. If the attempt is overdue, the delivery goes into the overdue lane, which
-- is released at a fixed rate: many are overdue at once when Redis, the workers or their network were away. A retry is overdue if it is
-- due for longer than `overdueAfterMs`; so is whatever was due before `dueBeforeMs`, the end of an outage. A first attempt (it has no x)
-- is due when its delivery is created. With `onlyOverdue`, a delivery that is not overdue is left as it is.
-- Returns 'parked', 'overdue', or 'no' where it was left or the job is not the delivery's any more.
--@include status

local found = call('HMGET', KEY_DELIVERY .. id, 'st', 'g', 'c', 'x')
local st, created, retryMs = found[1], found[3], tonumber(found[4])
if not st or isFinished(st) or st == HELD or (found[2] or '0') ~= generation then return 'no' end
if retryMs and nowMs - retryMs > overdueAfterMs or (retryMs or tonumber(created)) < dueBeforeMs then
  call('ZADD', KEY_OVERDUE .. subscriptionId, created, id)
  call('SADD', KEY_RELEASE_OVERDUE, subscriptionId)
  return 'overdue'
end
if onlyOverdue then return 'no' end
call('ZADD', KEY_PARKED .. subscriptionId, created, id)
call('SADD', KEY_RELEASE_PARKED, subscriptionId)
return 'parked'
