-- Claims a fan-out that has made no progress since `beforeMs`, or whose time is later than `afterMs`: the clock of its
-- process was wrong. It is one script so that only one process claims it: the claim counts as progress. Returns 1, or 0
-- if the fan-out is confirmed or another process has claimed it.
local progressAtMs = tonumber(call('ZSCORE', KEY_FANNING_OUT, event))
if not progressAtMs or progressAtMs > beforeMs and progressAtMs < afterMs then return 0 end
call('ZADD', KEY_FANNING_OUT, nowMs, event)
return 1
