-- Add the first jobs of deliveries. These do nothing, for a store without a queue: openStore puts those of packages/queue in their place.
local function addFirstJob() end
local function addToQueues() end
