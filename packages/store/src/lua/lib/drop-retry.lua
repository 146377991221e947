-- Removes the job of a delivery that has ended if it waits for its time or behind first attempts. Leaves one that waits
-- in the queue, because Redis would search the whole queue for it: a worker that takes it finds the delivery ended.
local function dropRetry(jobId)
  local isRetry = call('ZREM', KEY_QUEUE .. 'delayed', jobId) + call('ZREM', KEY_QUEUE .. 'prioritized', jobId) > 0
  if isRetry then call('DEL', KEY_QUEUE .. jobId) end
end
