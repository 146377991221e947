-- Makes a held delivery pending again, or waiting for a retry if it has had attempts. The next job's generation follows
-- from `nowMs`, so each later job shows that the delivery was held, and when it was released (`releasedAtMs` of
-- packages/core).
--@include delivery-key
--@include status

local function releaseHeld(id, created, isRetry, nowMs)
  local key, st = deliveryKey(id), isRetry and WAITING_FOR_RETRY or PENDING
  if (tonumber(call('HGET', key, 'g')) or 0) < nowMs then call('HSET', key, 'g', nowMs) end
  call('HSET', key, 'st', st)
  move(id, created, HELD, st)
end
