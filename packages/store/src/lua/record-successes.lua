-- Records attempts that succeeded as recordAttempt does, ends their jobs and takes the next one for each that has a token for it: all that Redis has to do
-- for most deliveries, in one step for several. `home` is the prefix of a delivery's partition, empty if it is that of the call. A job that another worker has
-- by now is left to it. Returns for each {'recorded', 'over' or 'repeated', deliveries parked at the address, what endJob returns, the next job}.
--@include delivery-key
--@include succeed
--@include end-job
--@include next-job

local reply, own, known, trials = {}, prefix, {[knownEvent] = true}, {}
for home, id, number, attempt, endedAtMs, expiresAtMs, response, responsesUntilMs, jobId, token, nextToken in successes do
  -- Everything below uses the keys of this partition.
  prefix = home ~= '' and home or own
  local found = call('HMGET', deliveryKey(id), 'st', 'n', 's', 'c', 'x', 'b')
  local st, sub = found[1], found[3]
  local kind, parked = 'recorded', 0
  if not st or st == SUCCEEDED or st == FAILED then
    kind = 'over'
  else
    parked = call('ZCARD', KEY_PARKED .. sub)
    if tonumber(found[2]) ~= number - 1 then
      kind = 'repeated'
    elseif succeed(id, found, number, attempt, expiresAtMs, maxAttempts, response, responsesUntilMs, endedAtMs) then
      trials[#trials + 1] = {prefix, sub, tonumber(endedAtMs)}
    end
  end
  local code = endJob(jobId, token)
  reply[#reply + 1] = {kind, parked, code, nextToken ~= '' and nextJob(nextToken, lockMs, nowMs, known, spansPartitions)}
end
if #trials == 0 then return reply end

-- Few attempts are trials: the functions included below would cost the others time.
--@include end-resume
for _, trial in ipairs(trials) do
  prefix = trial[1]
  endResume(trial[2], OUTCOME_SUCCEEDED, trial[3], retentionMs)
end
return reply
