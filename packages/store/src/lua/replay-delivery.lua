-- Makes a new delivery of the event of a failed one (specification 3.1), with its first job and an audit entry. It is
-- one script so that the failed delivery and its address are still as checked when the new one is made. Returns the
-- state of the new delivery (see lib/make.lua), or why there is none: 'gone', 'not_failed', 'too_late', 'erased' or
-- 'not_active'. Sent again because the reply was lost, it changes nothing and returns 'without_first_job', because the
-- new delivery may have been attempted since.
--@include delivery-key
--@include replay
--@include first-job
--@include error-text
--@include audit

if call('EXISTS', deliveryKey(newId)) == 1 then return 'without_first_job' end
local failed, refusal = readFailed(failedId, nowMs, retentionMs)
if refusal then return refusal end
local status = call('HGET', KEY_SUBSCRIPTION .. subscriptionId, 'status')
if status ~= ACTIVE and status ~= RESUMING then return 'not_active' end
local state = replay(subscriptionId, failed, firstId, newId, nowMs, oldestMs, lifeMs)
local problem
if state == 'pending' then
  addFirstJob(newId, subscriptionId, storedFormat < COMPACT_FORMAT and failed.event, nowMs)
  problem = addToQueues()
end
audit(nowMs, retentionMs, auditEntry)
return problem and redis.error_reply(errorText(problem)) or state
