-- Begins an erasure, unless `maxOpen` erasures have not ended yet. It is one script so that two calls can't exceed the
-- limit together. `listedMs` is how long it is listed. Returns 1, or 0 if there are too many. Sent again because the
-- reply was lost, it changes nothing and returns 1.
--@include audit

local key = KEY_ERASURE .. id
if call('EXISTS', key) == 1 then return 1 end
if call('SCARD', KEY_OPEN_ERASURES) >= maxOpen then return 0 end
for field, value in fields do call('HSET', key, field, value) end
call('SADD', KEY_OPEN_ERASURES, id)
call('ZADD', KEY_ERASURES, nowMs, id)
call('ZREMRANGEBYSCORE', KEY_ERASURES, '-inf', nowMs - listedMs)
call('PEXPIRE', KEY_ERASURES, listedMs)
if auditEntry ~= '' then audit(nowMs, retentionMs, auditEntry) end
return 1
