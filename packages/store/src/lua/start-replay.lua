-- Begins a bulk replay with this status, once for its id. It is one script so that of two processes only one begins it,
-- and the address is active when it begins. With `isAccepted` (it is part of a stored batch) it begins whatever the
-- state of its address: its first step finds out. With the status 'cancelled' it makes no deliveries. Returns 'started'
-- (also if it was before), 'no_subscription' or 'not_active'.
--@include audit

local key = KEY_REPLAY .. id
if call('HEXISTS', key, 'subscription') == 1 then return 'started' end
local address = call('HMGET', KEY_SUBSCRIPTION .. subscriptionId, 'status', 'created_at')
local state, createdAt = address[1], address[2]
if not isAccepted then
  if not state or state == DELETED then return 'no_subscription' end
  if state ~= ACTIVE and state ~= RESUMING then return 'not_active' end
end
-- The field `subscription` is written last: if Redis loses the later writes (a torn append-only file), what is left
-- does not count as a replay.
if status ~= REPLAY_CANCELLED then call('SADD', KEY_ACTIVE_REPLAYS, id) end
call('ZADD', KEY_REPLAYS, nowMs, id)
call('ZREMRANGEBYSCORE', KEY_REPLAYS, '-inf', nowMs - 2 * retentionMs)
for field, value in fields do call('HSET', key, field, value) end
-- Tells it from one that is created later under the same key; empty if it is deleted by now.
call('HSET', key, 'subscription_created_at', createdAt or '')
if status == REPLAY_CANCELLED then
  call('HSET', key, 'finished_at', nowMs)
  call('PEXPIREAT', key, nowMs + retentionMs)
end
call('HSET', key, 'subscription', subscriptionId, 'status', status)
audit(nowMs, retentionMs, auditEntry)
return 'started'
