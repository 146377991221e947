-- One step of a bulk replay: makes new deliveries of some failed ones, counts them and moves the cursor on, all or nothing. A step that
-- another process has done already (the cursor has moved) changes nothing. The new deliveries wait in the parked lane, so that any number
-- of them puts nothing into the queue ahead of other addresses. Returns 1 where the step was done now, else 0.
--@include replay
--@include notify

local key = KEY_REPLAY .. id
local record = call('HMGET', key, 'subscription', 'status', 'cursor')
if record[2] ~= REPLAY_RUNNING or (record[3] or '') ~= cursor then return 0 end
local sub, replayed = record[1], 0
local status = call('HGET', KEY_SUBSCRIPTION .. sub, 'status')
call('HSET', key, 'cursor', nextCursor)
if not status or status == DELETED then
  call('HSET', key, 'status', REPLAY_FAILED, 'finished_at', nowMs)
  notify(nowMs, NOTICE_REPLAY_FAILED, 's', sub, 'r', id, 'w', REASON_SUBSCRIPTION_DELETED)
else
  for failedId, firstId, newId in candidates do
    local failed = call('HMGET', KEY_DELIVERY .. failedId, 'st', 'f', 'e', 'k')
    local newest = call('ZRANGE', KEY_REPLAYS_OF .. firstId, -1, -1)[1]
    local newestStatus = newest and call('HGET', KEY_DELIVERY .. newest, 'st')
    if failed[1] == FAILED and nowMs <= failed[2] + retentionMs and (not newestStatus or newestStatus == FAILED)
      and call('EXISTS', KEY_DELIVERY .. newId) == 0 then
      if replay(sub, failedId, failed, firstId, newId, nowMs, oldestMs, lifeMs) == 'pending' then
        call('ZADD', KEY_PARKED .. sub, nowMs, newId)
        call('SADD', KEY_RELEASE_PARKED, sub)
      end
      replayed = replayed + 1
    end
  end
  local all = call('HINCRBY', key, 'replayed', replayed) + call('HINCRBY', key, 'skipped', lookedAt - replayed)
  if not isLast then return 1 end
  call('HSET', key, 'status', REPLAY_DONE, 'finished_at', nowMs, 'total', all)
  notify(nowMs, NOTICE_REPLAY_DONE, 's', sub, 'r', id)
end
call('HDEL', key, 'cursor')
call('SREM', KEY_REPLAYING, id)
call('PEXPIREAT', key, nowMs + retentionMs)
return 1
