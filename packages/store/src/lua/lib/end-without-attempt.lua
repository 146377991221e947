-- Ends an unfinished delivery as failed, without an attempt: it leaves its lane, and the job of its retry is removed.
-- `found` has the delivery's fields st, s, c, g.
--@include fail
--@include current-job

local function endWithoutAttempt(id, found, reason, nowMs, expiresAtMs, retentionMs)
  local sub = found[2]
  fail(id, found[1], sub, found[3], reason, nowMs, expiresAtMs, retentionMs)
  call('ZREM', KEY_HELD .. sub, id)
  call('ZREM', KEY_PARKED .. sub, id)
  call('ZREM', KEY_OVERDUE .. sub, id)
  dropRetry(id, found[4])
end
