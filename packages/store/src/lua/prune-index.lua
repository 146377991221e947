-- Removes from an index the entries whose delivery has expired, among up to `limit` entries older than `beforeMs`, from
-- position `offset` on. It is one script to check hundreds of keys with one call. Returns {entries looked at, entries
-- removed}.
--@include delivery-key

-- By rank: to an offset among scores, Redis walks entry by entry, and a million may be kept.
local last = math.min(offset + limit, call('ZCOUNT', key, '-inf', beforeMs)) - 1
local ids = last < offset and {} or call('ZRANGE', key, offset, last)
local removed = 0
for _, id in ipairs(ids) do
  if call('EXISTS', deliveryKey(id)) == 0 then removed = removed + call('ZREM', key, id) end
end
return {#ids, removed}
