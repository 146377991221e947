-- Takes the next jobs of the queue, at most `limit`. Returns what nextJob returns for each; if fewer wait, the last one says when the next is due. An event
-- that several of them have is returned once.
--@include next-job

local taken = {}
for i = 1, limit do
  local job = readNext(token, lockMs, nowMs, knownEvent, spansPartitions)
  taken[i] = job
  if job[1] == '' then return taken end
  if job[4] then knownEvent = job[2][4] end
end
wakeNext()
return taken
