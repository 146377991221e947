-- Removes from an index the entries whose delivery has expired; looks at up to `limit` entries older than `beforeMs`,
-- from `offset` on. Returns {entries looked at, entries removed}.
--@include delivery-key

local ids = call('ZRANGEBYSCORE', key, '-inf', beforeMs, 'LIMIT', offset, limit)
local removed = 0
for _, id in ipairs(ids) do
  if call('EXISTS', deliveryKey(id)) == 0 then removed = removed + call('ZREM', key, id) end
end
return {#ids, removed}
