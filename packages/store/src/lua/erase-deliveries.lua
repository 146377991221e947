-- Marks finished deliveries as erased, so that nothing replays them any more, and deletes what came back from their
-- attempts. With `endsUnsent`, first ends those that are unfinished and have no newer job. Returns how many are still
-- unfinished.
--@include delivery-key
--@include status
--@include fail
--@include leave-lanes

local left = 0
for id, generation in deliveries do
  local key = deliveryKey(id)
  local found = call('HMGET', key, 'st', 's', 'c', 'g', 'z')
  local st, sub = found[1], found[2]
  if st and not isFinished(st) and endsUnsent and (found[4] or '0') == generation then
    fail(id, st, sub, found[3], REASON_ERASED, nowMs, expiresAtMs, retentionMs)
    leaveLanes(id, sub)
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
