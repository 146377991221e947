-- One step of a cancellation: ends the deliveries of a bulk replay that have had no attempt and no newer job, and moves
-- the cursor on. `taken` is the number of deliveries that workers have in flight: a later sweep looks again at these
-- and at those released since they were read. Returns 1 if another step is to be done at once, otherwise 0, and the ids
-- of the deliveries that it ended.
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
