-- Writes a subscription as a whole, with its indexes, notices and audit entry, if its revision is `expectedRevision`
-- ('' for a new one) and it has not been created again under its key since. It is one script so that two operators
-- can't overwrite each other's changes, and the indexes always agree with the record. If the subscription becomes
-- active, its held deliveries will be released. If it is to be resuming and none of its deliveries is in a lane, it
-- becomes active at once. `saveId` identifies this save: sent again because the reply was lost, it changes nothing.
-- Returns {status as stored, 1 if its topics may have changed}, or -1 if the revision is another one.
--@include audit
--@include announce
--@include notify

local key = KEY_SUBSCRIPTION .. id
local old = call('HMGET', key, 'revision', 'status', 'topics', 'url', 'save_id', 'created_at')
local oldStatus, oldTopics = old[2], old[3] or ''
if old[5] == saveId then return {oldStatus, 1} end
if (old[1] or '') ~= expectedRevision or oldStatus == DELETED then return -1 end
if old[6] and old[6] ~= createdAtMs then return -1 end
local isResumed = status == RESUMING and oldStatus ~= RESUMING
local needsNoTrial = isResumed and call('EXISTS', KEY_HELD .. id, KEY_PARKED .. id, KEY_OVERDUE .. id) == 0
if needsNoTrial then status = ACTIVE end
local record = {'status', status, 'created_at', createdAtMs, 'topics', topics, 'save_id', saveId}
for field, value in fields do
  record[#record + 1] = field
  record[#record + 1] = value
  -- The health of the old address says nothing about the new one.
  if field == 'url' and old[4] and value ~= old[4] then
    call('DEL', KEY_HEALTH .. id)
    call('ZREM', KEY_FAILING, id)
  end
end
-- One command, so that Redis can't lose a part of it (a torn append-only file) and keep a subscription without a url.
call('HSET', key, unpack(record))
call('HINCRBY', key, 'revision', 1)
if oldStatus ~= status then
  call('ZADD', KEY_SUBSCRIPTIONS .. status, createdAtMs, id)
  if oldStatus then call('ZREM', KEY_SUBSCRIPTIONS .. oldStatus, id) end
  if status == PAUSED then
    call('HSET', key, 'paused_at', nowMs)
    notify(nowMs, NOTICE_SUBSCRIPTION_PAUSED, 's', id, 'w', statusReason)
  end
  if status == REFUSED then notify(nowMs, NOTICE_SUBSCRIPTION_REFUSED, 's', id, 'w', statusReason) end
end
if oldStatus and oldStatus ~= status then call('HDEL', key, 'trial', 'resume_at', 'resume_outcome') end
if isResumed then call('HSET', key, 'resume_at', nowMs, 'resume_outcome', needsNoTrial and OUTCOME_SUCCEEDED or OUTCOME_TRYING) end
if needsNoTrial then call('HSET', key, 'status_reason', '', 'consecutive_failures', 0) end
if status == RESUMING then call('SADD', KEY_RESUMING, id) elseif oldStatus == RESUMING then call('SREM', KEY_RESUMING, id) end
if oldTopics ~= topics then
  for topic in string.gmatch(oldTopics, '%S+') do call('SREM', KEY_TOPIC .. topic, id) end
  for topic in string.gmatch(topics, '%S+') do call('SADD', KEY_TOPIC .. topic, id) end
  call('INCRBY', KEY_TOPICS_VERSION, topicsStep)
end
if status == ACTIVE and call('EXISTS', KEY_HELD .. id) == 1 then call('SADD', KEY_RELEASE_HELD, id) end
announce(id)
if auditEntry ~= '' then audit(nowMs, retentionMs, auditEntry) end
return {status, oldTopics ~= topics and 1 or 0}
