-- Adds an entry (JSON) to the audit trail, for an action that has no script of its own. Returns nothing.
--@include audit

audit(nowMs, retentionMs, auditEntry)
