-- Removes from the stream of succeeded deliveries the entries whose delivery has expired, among up to `limit` entries
-- older than `beforeMs`, after the entry `after`. If an event was published again after it had expired, another
-- delivery may have the id of one that has expired: it was made at another time. It is one script to check hundreds of
-- keys with one call. Returns {entries looked at, entries removed, id of the last entry looked at}.
--@include delivery-key

local function isGone(id, created)
  local record = deliveryKey(id)
  if call('EXISTS', record) == 0 then return true end
  -- One that can't be read is kept: whoever lists it learns why.
  local found = redis.pcall('HGET', record, 'c')
  return type(found) == 'string' and tonumber(found) ~= created
end

local found = call('XRANGE', KEY_SUCCEEDED, after == '' and '-' or '(' .. after, beforeMs, 'COUNT', limit)
local gone = {}
for _, entry in ipairs(found) do
  local fields = entry[2]
  local created = string.match(entry[1], '^%d+') - fields[4]
  if isGone(DELIVERY_ID_START .. fields[2], created) then gone[#gone + 1] = entry[1] end
end
if #gone > 0 then call('XDEL', KEY_SUCCEEDED, unpack(gone)) end
return {#found, #gone, #found > 0 and found[#found][1] or ''}
