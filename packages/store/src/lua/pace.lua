-- Paces an attempt if it is late. Returns when it is due (0: now).
--@include pace

local found = call('HMGET', KEY_DELIVERY .. id, 'st', 'x', 'c')
if found[1] ~= WAITING and found[1] ~= PENDING then return 0 end
return pace(id, subscriptionId, found[2], found[3], nowMs, missedMs, lateMs, everyMs, dueBeforeMs)
