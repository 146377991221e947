-- Puts back the jobs that were taken with one of the tokens in `lost` and that the caller does not know of: it was given
-- them by a reply that was lost, and where ioredis has sent the command again, that took others with the same token.
-- Returns how many.
--@include put-back
local isLost, isKnown = {}, {}
for token in lost do isLost[token] = true end
for id in known do isKnown[id] = true end
local moved = 0
-- The newest first: what is put back last is taken first.
for _, id in ipairs(call('LRANGE', KEY_QUEUE .. 'active', 0, -1)) do
  if not isKnown[id] and isLost[call('GET', KEY_QUEUE .. id .. ':lock')] then
    putBack(id)
    moved = moved + 1
  end
end
return moved
