-- Removes from an index the entries whose delivery has expired, among up to `limit` entries older than `beforeMs`, from
-- position `offset` on. It is one script to check hundreds of keys with one call. Returns {entries looked at, entries
-- removed}.
--@include delivery-key

local ids = call('ZRANGEBYSCORE', key, '-inf', beforeMs, 'LIMIT', offset, limit)
local removed = 0
for _, id in ipairs(ids) do
  if call('EXISTS', deliveryKey(id)) == 0 then removed = removed + call('ZREM', key, id) end
end
return {#ids, removed}
