-- Takes a bulk replay from maintenance. Its record, and the list of its deliveries, expire after the retention.
local function leaveReplay(id, nowMs, retentionMs)
  call('SREM', KEY_ACTIVE_REPLAYS, id)
  call('PEXPIREAT', KEY_REPLAY .. id, nowMs + retentionMs)
  call('PEXPIREAT', KEY_REPLAY_DELIVERIES .. id, nowMs + retentionMs)
end

-- Ends the work on a bulk replay.
local function endReplay(id, status, nowMs, retentionMs)
  call('HSET', KEY_REPLAY .. id, 'status', status, 'finished_at', nowMs)
  -- Release 0.1.0 wrote this key without an expiry, and nothing reads it.
  call('DEL', KEY_OPEN_REPLAYS)
  leaveReplay(id, nowMs, retentionMs)
end
