-- Cancels a bulk replay: it makes no more deliveries, and maintenance ends those that have had no attempt. Returns
-- 'now_cancelled', 'gone', or the status that does not allow it ('done' where none waits any more).
--@include audit

local key = KEY_REPLAY .. id
local record = call('HMGET', key, 'status', 'counted', 'delivered', 'failed', 'cancelled')
local status = record[1]
if not status then return 'gone' end
local ended = (tonumber(record[3]) or 0) + (tonumber(record[4]) or 0) + (tonumber(record[5]) or 0)
if status == REPLAY_FAILED or status == REPLAY_CANCELLED or status == REPLAY_DONE and (tonumber(record[2]) or 0) <= ended then
  return status
end
-- First: what half of this script leaves, after a torn append-only file, goes on or is cancelled.
call('SADD', KEY_REPLAYS_ACTIVE, id)
call('HSET', key, 'status', REPLAY_CANCELLED, 'finished_at', nowMs)
call('HDEL', key, 'cursor')
-- Long enough for maintenance to end its deliveries, which then sets the time from now.
call('PEXPIREAT', key, nowMs + lifeMs)
call('PEXPIRE', KEY_REPLAY_DELIVERIES .. id, lifeMs)
audit(nowMs, retentionMs, auditEntry)
return 'now_cancelled'
