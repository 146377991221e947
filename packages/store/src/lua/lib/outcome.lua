--@include delivery-key

-- Counts how a delivery of a bulk replay ended, once: 'delivered', 'failed' or 'cancelled'. Then the delivery no longer names its replay, so
-- that maintenance finds what a worker of an earlier version has ended without counting. A record that has expired is not made again.
local function countOutcome(replayId, id, outcome)
  local key = KEY_REPLAY .. replayId
  if call('EXISTS', key) == 0 then return end
  call('HINCRBY', key, outcome, 1)
  call('HDEL', deliveryKey(id), 'b')
end
