-- Does one step of a bulk replay: makes new deliveries of failed ones, counts them, and moves the cursor on. It is one
-- script so that a step counts once: one that another process has done already (the cursor has moved) changes nothing.
-- The new deliveries wait in the parked lane, so that a replay of any size puts no job ahead of other addresses.
-- `candidates` are failed deliveries whose event still exists; `firstId` is the first delivery of their chain of
-- replays. Returns 1 if the step was done now, else 0.
--@include append
--@include delivery-key
--@include replay
--@include notify
--@include replay-end
--@include replay-deleted

local key = KEY_REPLAY .. id
local record = call('HMGET', key, 'subscription', 'status', 'cursor', 'subscription_created_at')
if (record[2] ~= REPLAY_RUNNING and record[2] ~= REPLAY_CANARY) or (record[3] or '') ~= cursor then return 0 end
local sub, replayed = record[1], 0
if endIfDeleted(id, sub, record[4], nowMs, retentionMs) then return 1 end
call('HSET', key, 'cursor', nextCursor)
local list = KEY_REPLAY_DELIVERIES .. id
for failedId, firstId, newId in candidates do
  local failed, refusal = readFailed(failedId, nowMs, retentionMs)
  local newest = call('ZRANGE', KEY_REPLAYS_OF .. firstId, -1, -1)[1]
  local newestStatus = newest and call('HGET', deliveryKey(newest), 'st')
  -- A replay whose record is gone has succeeded: a failed one is kept for longer than the delivery that it replays.
  local isOpen = not newest or newestStatus == FAILED
  if not refusal and isOpen and call('EXISTS', deliveryKey(newId)) == 0 then
    if replay(sub, failed, firstId, newId, nowMs, oldestMs, lifeMs) == 'pending' then
      -- All deliveries of a step have the same creation time: a fraction of a millisecond keeps them in the order of
      -- the failed ones.
      call('ZADD', KEY_PARKED .. sub, nowMs + replayed / 4096, newId)
      call('SADD', KEY_RELEASE_PARKED, sub)
    end
    call('HSET', deliveryKey(newId), 'b', id)
    append(list, nowMs, 0, 'd', newId)
    replayed = replayed + 1
  end
end
if replayed > 0 then call('PEXPIRE', list, lifeMs) end
-- 'counted' is less than 'replayed' if a release that counts no outcomes has made some of the deliveries.
call('HINCRBY', key, 'counted', replayed)
local all = call('HINCRBY', key, 'replayed', replayed) + call('HINCRBY', key, 'skipped', lookedAt - replayed)
if not isLast then return 1 end
call('HSET', key, 'total', all)
notify(nowMs, NOTICE_REPLAY_DONE, 's', sub, 'r', id)
endReplay(id, REPLAY_DONE, nowMs, retentionMs)
call('HDEL', key, 'cursor')
return 1
