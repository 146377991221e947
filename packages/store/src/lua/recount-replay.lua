-- Counts those of a bulk replay's deliveries that have ended without being counted, because a worker of an earlier version ended them. A look
-- over its deliveries begins if the outcome has not changed since this script was called last, and takes several steps. Returns 1 where there
-- is another one; otherwise sets the time of the next look.
--@include delivery-key
--@include status
--@include outcome

local key = KEY_REPLAY .. id
local record = call('HMGET', key, 'counted', 'delivered', 'failed', 'cancelled', 'recounted', 'seen')
if not record[1] or (record[5] or '') ~= from then return 0 end
local ended = (tonumber(record[2]) or 0) + (tonumber(record[3]) or 0) + (tonumber(record[4]) or 0)
if from == '' and record[6] ~= tostring(ended) then
  call('HSET', key, 'seen', ended)
  call('ZADD', KEY_REPLAYS_OPEN, 'XX', nowMs + REPLAY_QUIET_MS, id)
  return 0
end
local waiting = tonumber(record[1]) - ended
for deliveryId in deliveries do
  local found = call('HMGET', deliveryKey(deliveryId), 'st', 'b', 'r')
  if waiting > 0 and found[1] and isFinished(found[1]) and found[2] == id then
    local outcome = found[1] == SUCCEEDED and 'delivered' or found[3] == REASON_CANCELLED and 'cancelled' or 'failed'
    countOutcome(id, deliveryId, outcome)
    waiting = waiting - 1
  end
end
if not isLast then
  call('HSET', key, 'recounted', to)
  return 1
end
call('HDEL', key, 'recounted')
call('ZADD', KEY_REPLAYS_OPEN, 'XX', nowMs + REPLAY_RECOUNT_MS, id)
return 0
