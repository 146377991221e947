-- Adds the first job of a delivery. This one does nothing, for a store without a queue: openStore puts that of packages/queue in its place.
local function addFirstJob() end
