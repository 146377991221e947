-- Counts how a delivery of a bulk replay ended: 'delivered', 'failed' or 'cancelled'. A record that has expired is not made again.
local function countOutcome(replayId, outcome)
  local key = KEY_REPLAY .. replayId
  if call('EXISTS', key) == 1 then call('HINCRBY', key, outcome, 1) end
end
