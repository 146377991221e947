-- Ends a job whose delivery needs it no longer, and takes the next one if there is a token for it. Returns {what endJob returns, the next job}.
--@include end-job
--@include next-job

local known = {[knownEvent] = true}
return {endJob(jobId, token), nextToken ~= '' and nextJob(nextToken, lockMs, nowMs, known, spansPartitions)}
