-- Parks several deliveries that have no free slot, ends their jobs, and takes a next job for each that comes with a
-- token for it. `home` is the prefix of a delivery's partition, empty if it is that of the call. If another worker has
-- the job by now, that worker may be making the attempt, so the delivery is not parked. Returns the addresses whose
-- deliveries were parked in place of being taken, and for each job {what park returns, what endJob returns, the next
-- job}.
--@include delivery-key
--@include end-job
--@include next-job

setRoom(perAddress, busy, dueBeforeMs)
local reply, own, known = {}, prefix, {[knownEvent] = true}
for home, id, generation, subscriptionId, jobId, token, nextToken in jobs do
  -- Everything below uses the keys of this partition.
  prefix = home ~= '' and home or own
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
