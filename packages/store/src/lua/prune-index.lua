-- Removes from an index the entries whose delivery has expired, among up to `limit` entries older than `beforeMs`, from
-- position `offset` on. A joint record may outlive its delivery, for a replay (keep-joint.lua). It is one script to
-- check hundreds of keys with one call. Returns {entries looked at, entries removed}.
--@include delivery-key
--@include redis-ms

local now = redisMs()
local function isGone(id)
  local record = deliveryKey(id)
  if not isJoint(id) then return call('EXISTS', record) == 0 end
  local found = call('HMGET', record, 'st', 'u')
  return not found[1] or found[2] and tonumber(found[2]) <= now
end

-- By rank: to an offset among scores, Redis walks entry by entry, and a million may be kept.
local last = math.min(offset + limit, call('ZCOUNT', key, '-inf', beforeMs)) - 1
local ids = last < offset and {} or call('ZRANGE', key, offset, last)
local removed = 0
for _, id in ipairs(ids) do
  if isGone(id) then removed = removed + call('ZREM', key, id) end
end
return {#ids, removed}
