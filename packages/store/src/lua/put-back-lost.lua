-- Puts back into the queue the jobs that a worker has taken without knowing: the reply with them was lost. These are
-- the active jobs with a token in `lost`, except those in `known`: if ioredis sent the command again, the second try
-- took other jobs with the same token, and the worker knows them. It is one script so that no job ends in between.
-- Returns how many jobs it has put back.
--@include each-active
--@include put-back
local isLost, isKnown = {}, {}
for token in lost do isLost[token] = true end
for id in known do isKnown[id] = true end
local moved = 0
-- The newest job is put back first and the oldest last, so the oldest is taken first.
eachActive(function(id, token)
  if isKnown[id] or not isLost[token] then return end
  putBack(id)
  moved = moved + 1
end)
return moved
