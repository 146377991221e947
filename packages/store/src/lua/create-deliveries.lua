-- Makes the deliveries of one event to subscriptions of one partition, with their first jobs. It is one script so that
-- no delivery exists without its job or lane. An existing delivery does not change, so a repeated call makes only what
-- is missing; but one made before `nowMs`, the acceptance of the event, is of an earlier event with the same id, and is
-- replaced. `eventPartition` is the number of the event's partition, empty if it is this one; `kind` is the event's
-- type and environment as one number.
-- Returns the state of each delivery: 'pending' (its first job is in the queue), 'held', 'without_first_job' (it is in
-- another lane, had its first job before, or has ended), or 'none' (the subscription does not exist any more).
--@include delivery-key
--@include make
--@include first-job
--@include end-making

local reply = {}
indexed = {}
local _, problem = pcall(function()
  for subscriptionId, deliveryId in deliveries do
    local found = call('HMGET', deliveryKey(deliveryId), 'st', 'g', 'c')
    local exists = found[1] and tonumber(found[3] or nowMs) >= tonumber(nowMs)
    local first = exists and found[1] == PENDING and not found[2] and not call('ZSCORE', KEY_PARKED .. subscriptionId, deliveryId)
      and not call('ZSCORE', KEY_OVERDUE .. subscriptionId, deliveryId)
    local state, jobId = found[1] == HELD and 'held' or first and 'pending' or 'without_first_job', deliveryId
    if not exists then
      state, jobId = make(subscriptionId, deliveryId, event, eventPartition ~= '' and eventPartition, kind, nowMs, oldestMs, lifeMs, '')
    end
    if state == 'pending' then addFirstJob(jobId, subscriptionId, storedFormat < COMPACT_FORMAT and event, nowMs, not exists) end
    reply[#reply + 1] = state
  end
end)
return endMaking(problem, reply)
