-- Marks finished deliveries as erased, so that they can't be replayed, and deletes the responses to their attempts.
-- With `endsUnsent`, first ends the unfinished ones, unless a worker has their job. It is one script so that no worker
-- takes the job, and no replay begins, between the check and the mark. Returns how many are still unfinished.
--@include delivery-key
--@include status
--@include fail
--@include leave-lanes
--@include drop-retry

local left = 0
for id in deliveries do
  local key = deliveryKey(id)
  local found = call('HMGET', key, 'st', 's', 'c', 'g', 'z')
  local st, sub = found[1], found[2]
  local jobId = found[4] and id .. '.' .. found[4] or id
  if st and not isFinished(st) and endsUnsent and call('EXISTS', KEY_QUEUE .. jobId .. ':lock') == 0 then
    fail(id, st, sub, found[3], REASON_ERASED, nowMs, expiresAtMs, retentionMs)
    leaveLanes(id, sub)
    dropRetry(jobId)
    st = FAILED
  end
  if st and not isFinished(st) then
    left = left + 1
  elseif st and not found[5] then
    local responses = KEY_RESPONSES .. id
    call('HSET', key, 'z', call('EXISTS', responses) == 1 and ERASED_WITH_RESPONSES or ERASED)
    call('DEL', responses)
  end
end
return left
