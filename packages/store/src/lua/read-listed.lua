-- Returns what a console's directory holds of each subscription (lib/listed.lua), as one flat list. It is one script to
-- read hundreds with one call.
--@include listed

local found = {}
for id in ids do addListed(found, id, 'unreadable') end
return found
