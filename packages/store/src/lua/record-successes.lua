-- Records several attempts that succeeded, each once, ends their jobs and takes a next job for each that comes with a
-- token for it: for most deliveries Redis has nothing else to do. A trial that succeeds ends the resume. `home` is the
-- prefix of a delivery's partition, empty if it is that of the call. With `laneToken`, deliveries that are parked at
-- the same address may be taken, oldest first: up to `parkedFirst` of them in place of a job of the queue; if
-- `parkedFirst` is empty, one, and only if the queue has no job for this worker. A job that another worker has by now
-- is left to it. Returns the addresses whose deliveries were parked, and for each success {'recorded', 'over' or
-- 'repeated', deliveries parked at the address, what endJob returns, the queue's next job, the jobs of parked
-- deliveries}.
--@include delivery-key
--@include succeed
--@include end-job
--@include next-job

setRoom(perAddress, busy, dueBeforeMs)
local reply, own, known, trials = {}, prefix, {[knownEvent] = true}, {}
for home, id, number, attempt, endedAtMs, expiresAtMs, response, responsesUntilMs, jobId, token, nextToken, laneToken, parkedFirst in successes do
  -- Everything below uses the keys of this partition.
  prefix = home ~= '' and home or own
  local found = call('HMGET', deliveryKey(id), 'st', 'n', 's', 'c', 'x', 'b')
  local st, sub = found[1], found[3]
  local kind, parked = 'recorded', 0
  if not st or st == SUCCEEDED or st == FAILED then
    kind = 'over'
  else
    parked = countParked(sub)
    if tonumber(found[2]) ~= number - 1 then
      kind = 'repeated'
    elseif succeed(id, found, number, attempt, expiresAtMs, maxAttempts, response, responsesUntilMs, endedAtMs) then
      trials[#trials + 1] = {prefix, sub, tonumber(endedAtMs)}
    end
  end
  local code = endJob(jobId, token)
  local mayTakeParked, limit, parkedJobs, next = parked > 0 and laneToken ~= '', tonumber(parkedFirst), {}, false
  if mayTakeParked and limit then
    parkedJobs = takeParked(sub, limit, laneToken, lockMs, nowMs, known, spansPartitions)
  end
  if #parkedJobs == 0 then
    -- If deliveries of its address are parked, they get the slot; otherwise the queue's next job of this address may.
    if parked == 0 and roomOf[sub] then roomOf[sub] = roomOf[sub] + 1 end
    if nextToken ~= '' then next = nextJob(nextToken, lockMs, nowMs, known, spansPartitions) end
    if mayTakeParked and not limit and not isJob(next) then
      parkedJobs = takeParked(sub, 1, laneToken, lockMs, nowMs, known, spansPartitions)
    end
  end
  reply[#reply + 1] = {kind, parked - #parkedJobs, code, next, parkedJobs}
end
if #trials == 0 then return {reply, parkedAddresses} end

-- Few attempts are trials: the functions included below would cost the others time.
--@include end-resume
for _, trial in ipairs(trials) do
  prefix = trial[1]
  endResume(trial[2], OUTCOME_SUCCEEDED, trial[3], retentionMs)
end
return {reply, parkedAddresses}
