-- Counts in the record of a bulk replay how one of its deliveries ended: 'delivered', 'failed' or 'cancelled'. Removes
-- the replay from the delivery's record (field b), because workers of release 0.1.0 count a delivery again that has
-- one. Counts nothing if the replay's record has expired.
--@include delivery-key

local function countOutcome(replayId, id, outcome)
  local key = KEY_REPLAY .. replayId
  if call('EXISTS', key) == 0 then return end
  call('HINCRBY', key, outcome, 1)
  call('HDEL', deliveryKey(id), 'b')
end
