-- Does one ZSCAN step over the subscriptions with a stored status, about `count` of them, and returns {next cursor,
-- what a console's directory holds of each (lib/listed.lua)}. Cursor '0' begins and ends. It is one script to read
-- hundreds with one call.
--@include listed

local scanned = call('ZSCAN', KEY_SUBSCRIPTIONS .. status, cursor, 'COUNT', count)
local found = {}
for i = 1, #scanned[2], 2 do addListed(found, scanned[2][i], status) end
return {scanned[1], found}
