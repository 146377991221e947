-- Gives deliveries whose job is lost a new generation, if they still wait for that job and were not parked meanwhile.
-- Returns (delivery, generation, event, subscription, next attempt or '')…
--@include delivery-key

local rescued = {}
for deliveryId, generation in jobs do
  local key = deliveryKey(deliveryId)
  local found = call('HMGET', key, 'st', 'g', 'e', 's', 'x')
  local isWaiting = (found[1] == PENDING or found[1] == WAITING_FOR_RETRY) and (found[2] or '0') == generation
  if isWaiting and not call('ZSCORE', KEY_PARKED .. found[4], deliveryId) and not call('ZSCORE', KEY_OVERDUE .. found[4], deliveryId) then
    local nextGeneration = tostring(call('HINCRBY', key, 'g', 1))
    for _, value in ipairs({deliveryId, nextGeneration, eventOf(deliveryId, found[3]), found[4], found[5] or ''}) do
      rescued[#rescued + 1] = value
    end
  end
end
return rescued
