-- Adds an entry (JSON) to the audit trail, for an action that has no script of its own. `entryId` is stored beside it:
-- sent again because the reply was lost, the entry is found among the newest, and is not added. Returns nothing.
--@include audit

for _, written in ipairs(call('XREVRANGE', KEY_AUDIT, '+', nowMs, 'COUNT', 100)) do
  if written[2][4] == entryId then return end
end
audit(nowMs, retentionMs, auditEntry, 'i', entryId)
