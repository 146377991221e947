-- Cancels a bulk replay: it makes no more deliveries, and maintenance ends those without an attempt. It is one script
-- so that the replay can't end, halt or go on between the check of its status and the change. Returns 'now_cancelled',
-- 'gone', or the status that does not allow it ('done' if none of its deliveries is unfinished). `decision`: as in
-- advance-erasure.lua.
--@include audit

local key = KEY_REPLAY .. id
local record = call('HMGET', key, 'status', 'counted', 'delivered', 'failed', 'cancelled', decision)
local status = record[1]
if not status then return 'gone' end
if record[6] then return 'now_cancelled' end
local ended = (tonumber(record[3]) or 0) + (tonumber(record[4]) or 0) + (tonumber(record[5]) or 0)
if status == REPLAY_FAILED or status == REPLAY_CANCELLED or status == REPLAY_DONE and (tonumber(record[2]) or 0) <= ended then
  return status
end
-- Comes first: if Redis loses the later writes (a torn append-only file), maintenance still handles the replay.
call('SADD', KEY_ACTIVE_REPLAYS, id)
call('HSET', key, 'status', REPLAY_CANCELLED, 'finished_at', nowMs, decision, 1)
call('HDEL', key, 'cursor')
-- Long enough for maintenance to end its deliveries. endReplay then sets the final expiry, counted from this moment.
call('PEXPIREAT', key, nowMs + lifeMs)
call('PEXPIRE', KEY_REPLAY_DELIVERIES .. id, lifeMs)
audit(nowMs, retentionMs, auditEntry)
return 'now_cancelled'
