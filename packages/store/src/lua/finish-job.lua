-- Ends a job that its delivery no longer needs, and takes the next job of the partition if `nextToken` is given. It is
-- one script to save a call for each job. Returns {code of endJob, next job or false (see nextJob), addresses whose
-- deliveries were parked}.
--@include end-job
--@include next-job

setRoom(perAddress, busy, dueBeforeMs)
local known = {[knownEvent] = true}
local code = endJob(jobId, token)
local next = nextToken ~= '' and nextJob(nextToken, lockMs, nowMs, known, spansPartitions)
return {code, next, parkedAddresses}
