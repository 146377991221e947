-- Returns what a directory holds of about `count` subscriptions with a stored status, after the cursor of the one
-- before; '0' begins and ends.
--@include listed

local scanned = call('ZSCAN', KEY_SUBSCRIPTIONS .. status, cursor, 'COUNT', count)
local found = {}
for i = 1, #scanned[2], 2 do addListed(found, scanned[2][i]) end
return {scanned[1], found}
