-- Ends a job as BullMQ's moveToFinished does for a job that it does not keep, but without an entry in its stream of
-- events. The job's id may remain in the set for the next check for stalled jobs, which ignores jobs that are not
-- active. Returns 0 or BullMQ's error code: -1 no such job, -2 it is not locked, -3 it is not active, -6 another worker
-- has the lock.
local function endJob(jobId, token)
  local jobKey = KEY_QUEUE .. jobId
  local lockKey = jobKey .. ':lock'
  local lock = call('GET', lockKey)
  if lock ~= token then return lock and -6 or call('EXISTS', jobKey) == 1 and -2 or -1 end
  local removed = call('DEL', jobKey, lockKey)
  if call('LREM', KEY_QUEUE .. 'active', -1, jobId) == 0 then return -3 end
  return removed == 2 and 0 or -1
end
