-- Applies the verdict on the canary of a bulk replay: the replay goes on, or halts until an operator decides; or it
-- ends, if its subscription was deleted. It is one script so that of several processes one applies it, with one notice.
-- Returns 1 if it changed the status, else 0.
--@include notify
--@include replay-deleted
--@include replay-end

local key = KEY_REPLAY .. id
local record = call('HMGET', key, 'status', 'subscription', 'subscription_created_at')
if record[1] ~= REPLAY_CANARY then return 0 end
if endIfDeleted(id, record[2], record[3], nowMs, retentionMs) then return 1 end
if hasPassed then
  call('HSET', key, 'status', REPLAY_RUNNING)
  return 1
end
call('HSET', key, 'status', REPLAY_HALTED)
leaveReplay(id, nowMs, retentionMs)
notify(nowMs, NOTICE_REPLAY_HALTED, 's', record[2], 'r', id)
return 1
