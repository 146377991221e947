-- Ends a job whose delivery needs it no longer, and takes the next one if there is a token for it. Returns {what endJob
-- returns, the next job, the addresses of which deliveries were parked}.
--@include end-job
--@include next-job

setRoom(perAddress, busy, dueBeforeMs)
local known = {[knownEvent] = true}
local code = endJob(jobId, token)
local next = nextToken ~= '' and nextJob(nextToken, lockMs, nowMs, known, spansPartitions)
return {code, next, parkedAddresses}
