-- Begins an erasure. Returns 1, or 0 where `maxOpen` have not ended yet.
--@include audit

if call('SCARD', KEY_ERASURES_OPEN) >= maxOpen then return 0 end
local key = KEY_ERASURE .. id
for field, value in fields do call('HSET', key, field, value) end
call('SADD', KEY_ERASURES_OPEN, id)
call('ZADD', KEY_ERASURES, nowMs, id)
call('ZREMRANGEBYSCORE', KEY_ERASURES, '-inf', nowMs - listedMs)
call('PEXPIRE', KEY_ERASURES, listedMs)
if auditEntry ~= '' then audit(nowMs, retentionMs, auditEntry) end
return 1
