-- Takes the next job of the queue. Returns what nextJob returns.
--@include next-job

return nextJob(token, lockMs, nowMs, knownEvent)
