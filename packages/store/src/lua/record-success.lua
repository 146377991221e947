-- Records an attempt that succeeded as recordAttempt does, ends its job and takes the next one, if there is a token for it: all that Redis has to do
-- for most deliveries, in one step. A job that another worker has by now is left to it. Returns {'recorded', 'over' or 'repeated', deliveries
-- parked at the address, what endJob returns, the next job}.
--@include succeed
--@include end-job
--@include next-job

local found = call('HMGET', KEY_DELIVERY .. id, 'st', 'n', 's', 'c', 'x', 'b')
local st, sub = found[1], found[3]
local kind, parked, isTrial = 'recorded', 0, false
if not st or st == SUCCEEDED or st == FAILED then
  kind = 'over'
else
  parked = call('ZCARD', KEY_PARKED .. sub)
  if tonumber(found[2]) ~= number - 1 then
    kind = 'repeated'
  else
    isTrial = succeed(id, found, number, attempt, expiresAtMs, maxAttempts, response, responsesUntilMs)
  end
end
if not isTrial then
  return {kind, parked, endJob(jobId, token), nextToken ~= '' and nextJob(nextToken, lockMs, nowMs, knownEvent, spansPartitions)}
end

-- Few attempts are trials: the functions included below would cost the others time.
--@include end-resume
endResume(sub, OUTCOME_SUCCEEDED, endedAtMs, retentionMs)
return {kind, parked, endJob(jobId, token), nextToken ~= '' and nextJob(nextToken, lockMs, nowMs, knownEvent, spansPartitions)}
