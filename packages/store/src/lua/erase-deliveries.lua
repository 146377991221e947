-- Marks finished deliveries as erased, so that they can't be replayed, and deletes the responses to their attempts.
-- With `endsUnsent`, first ends the unfinished ones, unless a worker has their job. It is one script so that no worker
-- takes the job, and no replay begins, between the check and the mark. Returns {how many are still unfinished; ids of
-- the ended ones}.
--@include delivery-key
--@include status
--@include current-job
--@include end-without-attempt

local left, result = 0, {}
for id in deliveries do
  local key = deliveryKey(id)
  local found = call('HMGET', key, 'st', 's', 'c', 'g', 'z')
  local st = found[1]
  if st and not isFinished(st) and endsUnsent and not isTaken(id, found[4]) then
    endWithoutAttempt(id, found, REASON_ERASED, nowMs, expiresAtMs, retentionMs)
    st = FAILED
    result[#result + 1] = id
  end
  if st and not isFinished(st) then
    left = left + 1
  elseif st and not found[5] then
    local responses = KEY_RESPONSES .. id
    call('HSET', key, 'z', call('EXISTS', responses) == 1 and ERASED_WITH_RESPONSES or ERASED)
    call('DEL', responses)
  end
end
table.insert(result, 1, left)
return result
