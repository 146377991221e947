-- Counts how a delivery of a bulk replay ended: 'delivered', 'failed' or 'cancelled'. The delivery then no longer names
-- its replay: workers of release 0.1.0 count those again that do. A replay whose record has expired is not counted.
--@include delivery-key

local function countOutcome(replayId, id, outcome)
  local key = KEY_REPLAY .. replayId
  if call('EXISTS', key) == 0 then return end
  call('HINCRBY', key, outcome, 1)
  call('HDEL', deliveryKey(id), 'b')
end
