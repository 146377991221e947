-- Returns what a directory holds of each subscription.
--@include listed

local found = {}
for id in ids do addListed(found, id) end
return found
