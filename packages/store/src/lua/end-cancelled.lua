-- Does one step of a cancellation: ends those of `deliveries` that still have no attempt and the generation that the
-- caller has read, and moves the cursor `swept` on. It is one script so that no delivery is released between the check
-- and its end, and a step that another process has done already changes nothing.
-- `taken` is how many other deliveries workers have in flight. A later sweep looks again at these, and at those
-- released since they were read. Returns {1 if there is another step to do at once, else 0; ids of the ended
-- deliveries}.
--@include delivery-key
--@include status
--@include fail
--@include leave-lanes
--@include replay-end

local key = KEY_REPLAY .. id
local record = call('HMGET', key, 'status', 'swept')
if record[1] ~= REPLAY_CANCELLED or (record[2] or '') ~= swept then return {0} end
local result, released = {0}, 0
for deliveryId, generation in deliveries do
  local found = call('HMGET', deliveryKey(deliveryId), 'st', 's', 'c', 'g', 'n')
  local st, sub = found[1], found[2]
  local isUnattempted = st and not isFinished(st) and found[5] == '0'
  local isAsRead = (found[4] or '0') == generation
  if isUnattempted and not isAsRead then released = released + 1 end
  if isUnattempted and isAsRead then
    fail(deliveryId, st, sub, found[3], REASON_CANCELLED, nowMs, expiresAtMs, retentionMs)
    leaveLanes(deliveryId, sub)
    result[#result + 1] = deliveryId
  end
end
local takenInAll = call('HINCRBY', key, 'taken', taken + released)
if not isLast then
  call('HSET', key, 'swept', nextSwept)
  result[1] = 1
  return result
end
call('HDEL', key, 'swept', 'taken')
if takenInAll == 0 then endReplay(id, REPLAY_CANCELLED, call('HGET', key, 'finished_at'), retentionMs) end
return result
