-- Makes the deliveries of one event to subscriptions of one partition, with their first jobs. A delivery that exists is
-- left alone, so a repeat fills gaps. Returns the state of each: 'pending' (its first job is in the queue), 'held',
-- 'without_first_job' (in a lane, or past its first job), or 'none' (no such subscription any more). `eventPartition` is
-- empty if it is theirs.
--@include delivery-key
--@include make
--@include first-job
--@include error-text

local reply = {}
indexed = {}
local _, problem = pcall(function()
  for subscriptionId, deliveryId in deliveries do
    local found = call('HMGET', deliveryKey(deliveryId), 'st', 'g')
    local first = found[1] == PENDING and not found[2] and not call('ZSCORE', KEY_PARKED .. subscriptionId, deliveryId)
      and not call('ZSCORE', KEY_OVERDUE .. subscriptionId, deliveryId)
    local state = not found[1] and make(subscriptionId, deliveryId, event, eventPartition ~= '' and eventPartition, kind, nowMs, oldestMs, lifeMs, '')
      or found[1] == HELD and 'held' or first and 'pending' or 'without_first_job'
    if state == 'pending' then addFirstJob(deliveryId, subscriptionId, storedFormat < COMPACT_FORMAT and event, nowMs, not found[1]) end
    reply[#reply + 1] = state
  end
end)
-- What was made before something failed is complete too, and what fails in one partition stops no other.
local indexProblem, queueProblem = addToIndexes(), addToQueues()
problem = problem or indexProblem or queueProblem
return problem and redis.error_reply(errorText(problem)) or reply
