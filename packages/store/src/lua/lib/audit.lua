-- Writes an entry (JSON) into the audit trail, with further fields beside it. If the clock of another process was
-- ahead, the trail has a later entry: the new one follows it, and `atMs` in the entry has its time.
--@include append

local function audit(nowMs, retentionMs, entry, ...)
  local newest = call('XREVRANGE', KEY_AUDIT, '+', '-', 'COUNT', 1)[1]
  if newest and tonumber(string.match(newest[1], '^%d+')) > tonumber(nowMs) then
    entry = '{"atMs":' .. nowMs .. ',' .. string.sub(entry, 2)
  end
  append(KEY_AUDIT, nowMs, math.max(0, nowMs - retentionMs), 'e', entry, ...)
  call('PEXPIRE', KEY_AUDIT, retentionMs + GRACE_MS)
end
