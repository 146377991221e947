-- Returns {when the pending delivery that has waited longest began to wait, in ms}, or {} if none is pending. A
-- delivery waits from its creation or, if it was held, from its release. It is one script so that no delivery moves
-- during the search.
-- The index is in the order of creation, so the first delivery that was never held ends the search. The search looks at
-- no more than MAX_LOOKED_FOR_OLDEST. If all of these were held, an older one behind them is missed: the waiting time
-- is then too short, but still grows while nothing is sent. One whose record can't be read waits since its creation.
--@include delivery-key

local oldest
local first, count = 0, 1
while first < MAX_LOOKED_FOR_OLDEST do
  local found = call('ZRANGE', INDEX_PENDING, first, first + count - 1, 'WITHSCORES')
  for i = 1, #found, 2 do
    local created = tonumber(found[i + 1])
    local isRead, stored = pcall(call, 'HGET', deliveryKey(found[i]), 'g')
    local generation = isRead and tonumber(stored) or 0
    local isOrdinary = generation < MIN_RELEASED_AT_MS
    local since = isOrdinary and created or generation
    if not oldest or since < oldest then oldest = since end
    if isOrdinary or oldest <= created then return {oldest} end
  end
  if #found < 2 * count then break end
  first, count = first + count, MAX_LOOKED_FOR_OLDEST - 1
end
return {oldest}
