-- Makes the next attempt of a delivery that waits for its retry due at once: adds a job of a new generation, and
-- removes the one that waited. It is one script so that two operators, or an operator and the retry, don't cause two
-- attempts. `tryId` identifies this call: sent again because the reply was lost, it changes nothing and returns
-- 'tried', whatever came of the attempt. Returns 'tried', or why not: 'not_waiting', 'not_active' or 'already_due'.
--@include delivery-key
--@include add-job
--@include audit
--@include current-job
--@include may-pass

local key = deliveryKey(id)
local found = call('HMGET', key, 'st', 'x', 's', 'e', 'k', 'g', 'w')
local sub = found[3]
if found[7] == tryId then return 'tried' end
if found[1] ~= WAITING_FOR_RETRY then return 'not_waiting' end
local address = call('HMGET', KEY_SUBSCRIPTION .. sub, 'status', 'trial')
if not address[1] or not mayPass(address[1], address[2], id, found[5]) then return 'not_active' end
-- The caller's clock may be behind: while a worker has the job, another one would be an attempt beside its.
if (tonumber(found[2]) or 0) <= nowMs or isTaken(id, found[6]) then return 'already_due' end
call('HSET', key, 'x', nowMs, 'w', tryId)
-- It may be in a lane: a slow worker recorded an attempt after another one had moved the delivery there.
call('ZREM', KEY_PARKED .. sub, id)
call('ZREM', KEY_OVERDUE .. sub, id)
if auditEntry ~= '' then audit(nowMs, retentionMs, auditEntry) end
dropRetry(id, found[6])
local jobId = makeJob(id, sub, eventOf(id, found[4]), false, nowMs)
enqueue(jobId, 0)
wakeWorker()
return 'tried'
