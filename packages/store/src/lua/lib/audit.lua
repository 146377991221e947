-- Writes an entry (JSON) into the audit trail.
--@include append

local function audit(nowMs, retentionMs, entry)
  append(KEY_AUDIT, nowMs, math.max(0, nowMs - retentionMs), 'e', entry)
  call('PEXPIRE', KEY_AUDIT, retentionMs + GRACE_MS)
end
