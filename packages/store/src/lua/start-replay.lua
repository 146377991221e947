-- Begins a bulk replay with this status, once. One that is accepted already, as part of a batch, begins whatever its
-- address is by now: its first step finds out. One that begins as cancelled makes no deliveries. Returns 'started',
-- 'no_subscription' or 'not_active'.
--@include audit

local key = KEY_REPLAY .. id
if call('HEXISTS', key, 'subscription') == 1 then return 'started' end
if not isAccepted then
  local address = call('HGET', KEY_SUBSCRIPTION .. subscriptionId, 'status')
  if not address or address == DELETED then return 'no_subscription' end
  if address ~= ACTIVE and address ~= RESUMING then return 'not_active' end
end
-- The record comes last: half of this script, after a torn append-only file, leaves nothing that looks like a replay.
if status ~= REPLAY_CANCELLED then call('SADD', KEY_REPLAYS_ACTIVE, id) end
call('ZADD', KEY_REPLAYS, nowMs, id)
call('ZREMRANGEBYSCORE', KEY_REPLAYS, '-inf', nowMs - 2 * retentionMs)
for field, value in fields do call('HSET', key, field, value) end
if status == REPLAY_CANCELLED then
  call('HSET', key, 'finished_at', nowMs)
  call('PEXPIREAT', key, nowMs + retentionMs)
end
call('HSET', key, 'subscription', subscriptionId, 'status', status)
audit(nowMs, retentionMs, auditEntry)
return 'started'
