-- Records several successful attempts, ends their jobs, and takes a next job for each one that has a `nextToken`. A
-- trial that succeeds ends the resume. It is one script so that each attempt is recorded once (the number of recorded
-- attempts must be `number` - 1), and because this is all that Redis has to do for most deliveries: several share one
-- call. `home` is the key prefix of the delivery's partition. If another worker has the lock of a job by now, the job
-- is left to it. Sent again because the reply was lost, it says 'recorded' again, so that the attempts are still logged
-- and counted.
-- With a `laneToken`, parked deliveries of the same address may be taken, oldest first: up to `parkedFirst` instead of
-- a job from the queue; or, if `parkedFirst` is empty, one, and only if the queue has no job for this worker. Returns
-- {for each success {'recorded', 'repeated' (another attempt has this number) or 'over' (the delivery has ended);
-- deliveries parked at the address; code of endJob; next job or false; jobs of parked deliveries}; addresses whose
-- deliveries were parked}.
--@include count-parked
--@include delivery-key
--@include succeed
--@include end-job
--@include next-job
--@include take-parked

setRoom(perAddress, busy, dueBeforeMs)
local reply, known, trials = {}, {[knownEvent] = true}, {}
for home, id, number, attempt, endedAtMs, expiresAtMs, response, responsesUntilMs, jobId, token, nextToken, laneToken, parkedFirst in successes do
  -- Everything below uses the keys of this partition.
  prefix = home
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
  if kind ~= 'recorded' and call('HGET', deliveryKey(id), 'a' .. number) == attempt then kind = 'recorded' end
  local code = endJob(jobId, token)
  local mayTakeParked, limit, parkedJobs, next = parked > 0 and laneToken ~= '', tonumber(parkedFirst), {}, false
  if mayTakeParked and limit then
    parkedJobs = takeParked(sub, limit, laneToken, lockMs, nowMs, known, spansPartitions)
  end
  if #parkedJobs == 0 then
    -- Parked deliveries of the address get its slot. If there are none, the queue's next job of the address may
    -- have it.
    if parked == 0 and roomOf[sub] then roomOf[sub] = roomOf[sub] + 1 end
    if nextToken ~= '' then next = nextJob(nextToken, lockMs, nowMs, known, spansPartitions) end
    if mayTakeParked and not limit and not isJob(next) then
      parkedJobs = takeParked(sub, 1, laneToken, lockMs, nowMs, known, spansPartitions)
    end
  end
  reply[#reply + 1] = {kind, parked - #parkedJobs, code, next, parkedJobs}
end
if #trials == 0 then return {reply, parkedAddresses} end

-- Included here because few attempts are trials, and each run of the script that gets here has to define its functions.
--@include end-resume
for _, trial in ipairs(trials) do
  prefix = trial[1]
  endResume(trial[2], OUTCOME_SUCCEEDED, trial[3], retentionMs)
end
return {reply, parkedAddresses}
