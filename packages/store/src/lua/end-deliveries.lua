-- Ends unfinished deliveries without an attempt, and removes the jobs of their retries; with `onlyHeld`, only held
-- ones; with `generation`, only if their newest job has it. It is one script so that a delivery that has moved on since
-- the caller read it is not ended by mistake, nor a new one with the same id. Leaves deliveries of a deleted
-- subscription that was created again under its key. Expired deliveries of one address share one notice, because more
-- may expire in a second than can be posted. Returns the ids of the ended ones.
--@include delivery-key
--@include status
--@include notify
--@include end-without-attempt

local ended = {}
local notices, noticeOf = {}, {}
for id in deliveries do
  local found = call('HMGET', deliveryKey(id), 'st', 's', 'c', 'g')
  local st, sub = found[1], found[2]
  local status = sub and reason == REASON_SUBSCRIPTION_DELETED and call('HGET', KEY_SUBSCRIPTION .. sub, 'status')
  local isLeft = status and status ~= DELETED or onlyHeld and st ~= HELD
    or generation ~= '' and (found[4] or '0') ~= generation
  if st and not isFinished(st) and not isLeft then
    endWithoutAttempt(id, found, reason, nowMs, expiresAtMs, retentionMs)
    if not noticeOf[sub] then
      noticeOf[sub] = {sub = sub, id = id, count = 0}
      table.insert(notices, noticeOf[sub])
    end
    noticeOf[sub].count = noticeOf[sub].count + 1
    ended[#ended + 1] = id
  end
end
for _, one in ipairs(reason == REASON_EXPIRED and notices or {}) do
  notify(nowMs, NOTICE_DELIVERY_FAILED, 's', one.sub, 'd', one.id, 'm', one.count, 'w', reason)
end
return ended
