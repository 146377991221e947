-- Begins a bulk replay. Returns 'started', 'no_subscription' or 'not_active'.
--@include audit

local status = call('HGET', KEY_SUBSCRIPTION .. subscriptionId, 'status')
if not status or status == DELETED then return 'no_subscription' end
if status ~= ACTIVE and status ~= RESUMING then return 'not_active' end
call('HSET', KEY_REPLAY .. id, 'subscription', subscriptionId, 'status', isCanary and REPLAY_CANARY or REPLAY_RUNNING)
for field, value in fields do call('HSET', KEY_REPLAY .. id, field, value) end
call('SADD', KEY_REPLAYS_ACTIVE, id)
call('ZADD', KEY_REPLAYS, nowMs, id)
call('ZREMRANGEBYSCORE', KEY_REPLAYS, '-inf', nowMs - 2 * retentionMs)
audit(nowMs, retentionMs, auditEntry)
return 'started'
