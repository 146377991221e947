-- Removes from an index the entries whose delivery has expired, among up to `limit` entries older than `beforeMs`, from
-- position `offset` on. A joint record may outlive its delivery, for a replay (keep-joint.lua). If an event was
-- published again after it had expired, another delivery may have the id of one that has expired: it was made at
-- another time. It is one script to check hundreds of keys with one call. Returns {entries looked at, entries removed}.
--@include delivery-key
--@include redis-ms

local now = redisMs()
local function isGone(id, created)
  local record = deliveryKey(id)
  if call('EXISTS', record) == 0 then return true end
  -- One that can't be read is kept: whoever lists it learns why.
  local found = redis.pcall('HMGET', record, 'c', 'st', 'u')
  if found.err or not found[1] then return false end
  return found[1] ~= created or isJoint(id) and (not found[2] or found[3] and tonumber(found[3]) <= now)
end

-- By rank: to an offset among scores, Redis walks entry by entry, and a million may be kept.
local last = math.min(offset + limit, call('ZCOUNT', key, '-inf', beforeMs)) - 1
local entries = last < offset and {} or call('ZRANGE', key, offset, last, 'WITHSCORES')
local removed = 0
for i = 1, #entries, 2 do
  if isGone(entries[i], entries[i + 1]) then removed = removed + call('ZREM', key, entries[i]) end
end
return {#entries / 2, removed}
