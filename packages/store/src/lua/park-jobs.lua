-- Parks deliveries for which a worker has no free slot, ends their jobs, and takes a next job for each one that has a
-- `nextToken`. It is one script so that each delivery has either a job or a place in a lane. If another worker has the
-- lock by now, the delivery is not parked, because that worker may be making the attempt. `home` is the key prefix of
-- the delivery's partition.
-- Returns {for each job {result of park, code of endJob, next job or false}; addresses whose deliveries were parked
-- instead of their jobs being taken}.
--@include park
--@include delivery-key
--@include end-job
--@include next-job

setRoom(perAddress, busy, dueBeforeMs)
local reply, known = {}, {[knownEvent] = true}
for home, id, generation, subscriptionId, jobId, token, nextToken in jobs do
  -- Everything below uses the keys of this partition.
  prefix = home
  local lane, next = 'superseded', false
  if call('GET', KEY_QUEUE .. jobId .. ':lock') == token then
    local found = call('HMGET', deliveryKey(id), 'st', 'g', 'c', 'x')
    lane = park(id, generation, subscriptionId, found[1], found[2], found[3], found[4], nowMs, dueBeforeMs, false)
    addToLanes()
  end
  local code = endJob(jobId, token)
  if nextToken ~= '' then next = nextJob(nextToken, lockMs, nowMs, known, spansPartitions) end
  reply[#reply + 1] = {lane, code, next}
end
return {reply, parkedAddresses}
