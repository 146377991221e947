-- Adds an entry to the audit trail that belongs to no other change.
--@include audit

audit(nowMs, retentionMs, auditEntry)
