-- Ends a script that makes deliveries, which has set `indexed`: adds the entries of indexes and the jobs of those it
-- has made, also after an error (`problem`). Returns the script's reply.
--@include make
--@include first-job
--@include error-text
local function endMaking(problem, reply)
  local indexProblem, queueProblem = addToIndexes(), addToQueues()
  problem = problem or indexProblem or queueProblem
  return problem and redis.error_reply(errorText(problem)) or reply
end
