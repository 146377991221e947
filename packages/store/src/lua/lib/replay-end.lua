-- Ends the work on a bulk replay. Its record, and the list of its deliveries, expire after the retention.
local function endReplay(id, status, nowMs, retentionMs)
  local key = KEY_REPLAY .. id
  call('HSET', key, 'status', status, 'finished_at', nowMs)
  call('SREM', KEY_REPLAYS_ACTIVE, id)
  -- Release 0.1.0 wrote this key without an expiry, and nothing reads it.
  call('DEL', KEY_REPLAYS_OPEN)
  call('PEXPIREAT', key, nowMs + retentionMs)
  call('PEXPIREAT', KEY_REPLAY_DELIVERIES .. id, nowMs + retentionMs)
end
