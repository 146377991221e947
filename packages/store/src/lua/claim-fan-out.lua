-- Claims a fan-out that has made no progress since `beforeMs`: nobody else finds it interrupted before it stands still
-- again. Returns 1 unless it is confirmed, or another process has claimed it.
local progressAtMs = tonumber(call('ZSCORE', KEY_FANNING_OUT, event))
if not progressAtMs or progressAtMs > beforeMs then return 0 end
call('ZADD', KEY_FANNING_OUT, nowMs, event)
return 1
