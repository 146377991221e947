-- Does one step of a cancellation: ends those of `deliveries` that have no attempt and whose job no worker has, removes
-- the jobs of retries, and moves the cursor `swept` on. It is one script so that no worker takes a job between the check
-- and the end, and a step that another process has done already changes nothing. A later sweep looks again at those
-- that a worker has. Returns {1 if there is another step to do at once, else 0; ids of the ended deliveries}.
--@include delivery-key
--@include status
--@include fail
--@include leave-lanes
--@include drop-retry
--@include replay-end

local key = KEY_REPLAY .. id
local record = call('HMGET', key, 'status', 'swept')
if record[1] ~= REPLAY_CANCELLED or (record[2] or '') ~= swept then return {0} end
local result, taken = {0}, 0
for deliveryId in deliveries do
  local found = call('HMGET', deliveryKey(deliveryId), 'st', 's', 'c', 'g', 'n')
  local st, sub = found[1], found[2]
  if st and not isFinished(st) and found[5] == '0' then
    local jobId = found[4] and deliveryId .. '.' .. found[4] or deliveryId
    if call('EXISTS', KEY_QUEUE .. jobId .. ':lock') == 1 then
      taken = taken + 1
    else
      fail(deliveryId, st, sub, found[3], REASON_CANCELLED, nowMs, expiresAtMs, retentionMs)
      leaveLanes(deliveryId, sub)
      dropRetry(jobId)
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
