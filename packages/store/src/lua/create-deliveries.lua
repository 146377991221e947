-- Makes the deliveries of one event to subscriptions of one partition. A delivery that exists is left alone, so a repeat fills gaps.
-- Returns the state of each: 'pending' (its first job must be added), 'held', 'alreadyQueued' (in a lane, or past its first job), or 'none'
-- (no such subscription any more).
--@include make

local reply = {}
for subscriptionId, deliveryId in deliveries do
  local found = call('HMGET', KEY_DELIVERY .. deliveryId, 'st', 'g')
  local first = found[1] == PENDING and not found[2] and not call('ZSCORE', KEY_PARKED .. subscriptionId, deliveryId)
    and not call('ZSCORE', KEY_OVERDUE .. subscriptionId, deliveryId)
  reply[#reply + 1] = not found[1] and make(subscriptionId, deliveryId, event, kind, nowMs, oldestMs, lifeMs, '')
    or found[1] == HELD and 'held' or first and 'pending' or 'alreadyQueued'
end
return reply
