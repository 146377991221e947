-- Ends unfinished deliveries without an attempt; with `onlyHeld`, those that are held. Returns (delivery, generation) of each ended one.
--@include delivery-key
--@include status
--@include fail

local ended = {}
for id in deliveries do
  local found = call('HMGET', deliveryKey(id), 'st', 's', 'c', 'g')
  local st, sub = found[1], found[2]
  if st and not isFinished(st) and (not onlyHeld or st == HELD) then
    fail(id, st, sub, found[3], reason, nowMs, expiresAtMs, retentionMs)
    call('ZREM', KEY_HELD .. sub, id)
    call('ZREM', KEY_PARKED .. sub, id)
    call('ZREM', KEY_OVERDUE .. sub, id)
    ended[#ended + 1] = id
    ended[#ended + 1] = found[4] or '0'
  end
end
return ended
