-- Returns when the pending delivery that has waited longest began to wait, or nothing if none is pending: at its
-- creation or, if it was held, at its release. Deliveries are in the order of their creation, so the first one that was
-- never held ends the search. If the limit of the search is reached, only the deliveries looked at count: one behind
-- them that was never held may have waited longer, but while nothing is sent, these wait too.
--@include delivery-key

local oldest
local first, count = 0, 1
while first < MAX_LOOKED_FOR_OLDEST do
  local found = call('ZRANGE', INDEX_PENDING, first, first + count - 1, 'WITHSCORES')
  for i = 1, #found, 2 do
    local created = tonumber(found[i + 1])
    local generation = tonumber(call('HGET', deliveryKey(found[i]), 'g')) or 0
    local isOrdinary = generation < MIN_RELEASED_AT_MS
    local since = isOrdinary and created or generation
    if not oldest or since < oldest then oldest = since end
    if isOrdinary or oldest <= created then return {oldest} end
  end
  if #found < 2 * count then break end
  first, count = first + count, MAX_LOOKED_FOR_OLDEST - 1
end
return {oldest}
