-- Adds what a console's directory holds of a subscription to a list: id, status ('' if it does not exist), environment,
-- time of creation, url, description, health, start of the failing period ('' if there is none), and how many attempts
-- have failed since the address was last healthy (0 outside a failing period).
--@include error-total

local function addListed(list, id)
  local stored = call('HMGET', KEY_SUBSCRIPTION .. id, 'status', 'environment', 'created_at', 'url', 'description')
  local health = call('HMGET', KEY_HEALTH .. id, 'w', 'since')
  local state = health[2] and HEALTH_FAILING or health[1] and HEALTH_HEALTHY or HEALTH_UNKNOWN
  local errors = health[2] and call('HGET', KEY_HEALTH .. id, 'e')
  local failed = errors and errorTotal(cjson.decode(errors)) or 0
  list[#list + 1] = id
  for i = 1, 5 do list[#list + 1] = stored[i] or '' end
  list[#list + 1], list[#list + 2], list[#list + 3] = state, health[2] or '', failed
end
