-- The job of a delivery's newest generation. `generation` is the delivery's field g: false until it has a second job.

local function jobIdOf(id, generation) return generation and id .. '.' .. generation or id end

-- Returns whether a worker has the job.
local function isTaken(id, generation) return call('EXISTS', KEY_QUEUE .. jobIdOf(id, generation) .. ':lock') == 1 end

-- Removes the job if it waits for its time or behind first attempts. Leaves one that waits in the queue, because Redis
-- would search the whole queue for it: a worker that takes it finds the delivery ended, or with another job.
local function dropRetry(id, generation)
  local jobId = jobIdOf(id, generation)
  local isRetry = call('ZREM', KEY_QUEUE .. 'delayed', jobId) + call('ZREM', KEY_QUEUE .. 'prioritized', jobId) > 0
  if isRetry then call('DEL', KEY_QUEUE .. jobId) end
end
