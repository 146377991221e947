-- Changes the status of an erasure to `to`, with `fields`, if its status is in `from` (a list with a space before and
-- after each). It is one script so that a confirmation and a cancellation can't both succeed. Deletes the sealed value
-- once no search needs it, and lets an erasure that has ended expire. Returns 'advanced', 'gone', or the status that
-- does not allow the change. `decision` identifies this call, and is kept as a field of the record: sent again because
-- the reply was lost, the script returns the same, whatever came in between.
--@include audit

local key = KEY_ERASURE .. id
local status, isDecided = unpack(call('HMGET', key, 'status', decision))
if not status then return 'gone' end
if isDecided then return 'advanced' end
if not string.find(from, ' ' .. status .. ' ', 1, true) then return status end
call('HSET', key, 'status', to, decision, 1)
for field, value in fields do call('HSET', key, field, value) end
local hasEnded = to == ERASURE_DONE or to == ERASURE_CANCELLED
if hasEnded or to == ERASURE_WAITING then call('HDEL', key, 'sealed') end
if hasEnded then
  call('SREM', KEY_OPEN_ERASURES, id)
  call('PEXPIREAT', key, nowMs + retentionMs)
end
if auditEntry ~= '' then audit(nowMs, retentionMs, auditEntry) end
return 'advanced'
