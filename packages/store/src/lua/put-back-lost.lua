-- Puts back the jobs that were taken with one of the tokens in `lost`, except for those in `known`: the reply with
-- these jobs was lost. If ioredis sent the command again, the second try took other jobs with the same token, and the
-- caller knows those. Returns how many jobs were put back.
--@include each-active
--@include put-back
local isLost, isKnown = {}, {}
for token in lost do isLost[token] = true end
for id in known do isKnown[id] = true end
local moved = 0
-- The newest first: what is put back last is taken first.
eachActive(function(id, token)
  if isKnown[id] or not isLost[token] then return end
  putBack(id)
  moved = moved + 1
end)
return moved
