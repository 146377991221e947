-- Removes from the stream of succeeded deliveries the entries whose delivery has expired, among up to `limit` entries
-- older than `beforeMs`, after the entry `after`. It is one script to check hundreds of keys with one call. Returns
-- {entries looked at, entries removed, id of the last entry looked at}.
--@include delivery-key

local found = call('XRANGE', KEY_SUCCEEDED, after == '' and '-' or '(' .. after, beforeMs, 'COUNT', limit)
local gone = {}
for _, entry in ipairs(found) do
  if call('EXISTS', deliveryKey(DELIVERY_ID_START .. entry[2][2])) == 0 then gone[#gone + 1] = entry[1] end
end
if #gone > 0 then call('XDEL', KEY_SUCCEEDED, unpack(gone)) end
return {#found, #gone, #found > 0 and found[#found][1] or ''}
