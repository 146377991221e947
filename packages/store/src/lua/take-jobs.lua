-- Takes the next jobs of the queue, at most `limit`. Returns what readNext returns for each, and the addresses of which
-- deliveries were parked. If fewer wait, the last one says when the next is due. An event that several of them have is
-- returned once.
--@include next-job

setRoom(perAddress, busy, dueBeforeMs)
local taken, known = {}, {[knownEvent] = true}
for i = 1, limit do
  taken[i] = readNext(token, lockMs, nowMs, known, spansPartitions)
  if not taken[i] then break end
  if taken[i][1] == '' then return {taken, parkedAddresses} end
end
wakeNext()
return {taken, parkedAddresses}
