-- Continues a bulk replay that its canary has halted, or whose canary has no verdict yet. It is one script so that a
-- cancellation or a verdict can't come between the check of the status and the change. Returns 'continued', 'gone', or
-- the status that does not allow it. `decision`: as in advance-erasure.lua.
--@include audit

local key = KEY_REPLAY .. id
local status, isDecided = unpack(call('HMGET', key, 'status', decision))
if not status then return 'gone' end
if isDecided then return 'continued' end
if status ~= REPLAY_HALTED and status ~= REPLAY_CANARY then return status end
-- Comes before the status: if Redis loses the later writes (a torn append-only file), the replay can be continued
-- again.
call('SADD', KEY_ACTIVE_REPLAYS, id)
call('HSET', key, 'status', REPLAY_RUNNING, decision, 1)
call('PERSIST', key)
call('PEXPIRE', KEY_REPLAY_DELIVERIES .. id, lifeMs)
audit(nowMs, retentionMs, auditEntry)
return 'continued'
