-- Ends a bulk replay as failed if its subscription was deleted after the replay began, even if one was created again
-- under its key: `createdAt` is when the subscription of the replay was created (false: before replays knew it).
-- Returns whether it ended.
--@include notify
--@include replay-end
local function endIfDeleted(id, sub, createdAt, nowMs, retentionMs)
  local address = call('HMGET', KEY_SUBSCRIPTION .. sub, 'status', 'created_at')
  local isSame = not createdAt or createdAt == address[2]
  if address[1] and address[1] ~= DELETED and isSame then return false end
  notify(nowMs, NOTICE_REPLAY_FAILED, 's', sub, 'r', id, 'w', REASON_SUBSCRIPTION_DELETED)
  endReplay(id, REPLAY_FAILED, nowMs, retentionMs)
  call('HDEL', KEY_REPLAY .. id, 'cursor')
  return true
end
