-- Does one step of a cancellation: ends those of `deliveries` that have no attempt and whose job no worker has, removes
-- the jobs of retries, and moves the cursor `swept` on. It is one script so that no worker takes a job between the
-- check and the end, and a step that another process has done already changes nothing. A later sweep looks again at
-- those that a worker has. Returns {1 if there is another step to do at once, else 0; ids of the ended deliveries}.
--@include delivery-key
--@include status
--@include current-job
--@include end-without-attempt
--@include replay-end

local key = KEY_REPLAY .. id
local record = call('HMGET', key, 'status', 'swept')
if record[1] ~= REPLAY_CANCELLED or (record[2] or '') ~= swept then return {0} end
local result, taken = {0}, 0
for deliveryId in deliveries do
  local found = call('HMGET', deliveryKey(deliveryId), 'st', 's', 'c', 'g', 'n')
  if found[1] and not isFinished(found[1]) and found[5] == '0' then
    if isTaken(deliveryId, found[4]) then
      taken = taken + 1
    else
      endWithoutAttempt(deliveryId, found, REASON_CANCELLED, nowMs, expiresAtMs, retentionMs)
      result[#result + 1] = deliveryId
    end
  end
end
local takenInAll = call('HINCRBY', key, 'taken', taken)
if not isLast then
  call('HSET', key, 'swept', nextSwept)
  result[1] = 1
  return result
end
call('HDEL', key, 'swept', 'taken')
if takenInAll == 0 then endReplay(id, REPLAY_CANCELLED, call('HGET', key, 'finished_at'), retentionMs) end
return result
