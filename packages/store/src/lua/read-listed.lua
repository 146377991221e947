-- Returns what a directory holds of each subscription, in order: status ('' for one that does not exist), environment, creation, url,
-- description, health, since when it fails ('' if it does not), and how many attempts have failed since it was last well.
--@include error-total

local found = {}
for id in ids do
  local stored = call('HMGET', KEY_SUBSCRIPTION .. id, 'status', 'environment', 'created_at', 'url', 'description')
  local health = call('HMGET', KEY_HEALTH .. id, 'w', 'since')
  local state = health[2] and HEALTH_FAILING or health[1] and HEALTH_HEALTHY or HEALTH_UNKNOWN
  local failed = health[2] and errorTotal(call('HGET', KEY_HEALTH .. id, 'e')) or 0
  for i = 1, 5 do found[#found + 1] = stored[i] or '' end
  found[#found + 1], found[#found + 2], found[#found + 3] = state, health[2] or '', failed
end
return found
