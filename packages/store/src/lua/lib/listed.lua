-- Adds what a console's directory holds of a subscription to a list: id, status ('' if it does not exist), environment,
-- time of creation, url, description, health, start of the failing period ('' if there is none), and how many attempts
-- have failed since the address was last healthy (0 outside a failing period). A record that can't be read is listed
-- with the status `present`: whoever loads it learns why, and it hides no other one.
--@include error-total

local function healthOf(id)
  local health = call('HMGET', KEY_HEALTH .. id, 'w', 'since')
  local errors = health[2] and call('HGET', KEY_HEALTH .. id, 'e')
  return {health[1], health[2], errors and errorTotal(cjson.decode(errors)) or 0}
end

local function addListed(list, id, present)
  local isRead, stored =
    pcall(call, 'HMGET', KEY_SUBSCRIPTION .. id, 'status', 'environment', 'created_at', 'url', 'description')
  if not isRead then stored = {present} end
  local isHealthRead, health = pcall(healthOf, id)
  if not isHealthRead then health = {false, false, 0} end
  local state = health[2] and HEALTH_FAILING or health[1] and HEALTH_HEALTHY or HEALTH_UNKNOWN
  list[#list + 1] = id
  for i = 1, 5 do list[#list + 1] = stored[i] or '' end
  list[#list + 1], list[#list + 2], list[#list + 3] = state, health[2] or '', health[3]
end
