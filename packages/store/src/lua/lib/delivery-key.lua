-- The key of a delivery: a record of its own, or the joint record of an event and its only delivery, whose reference
-- the delivery's id ends with (jointRef of packages/core). And the reference of a delivery's event, which a joint
-- record need not name.
local function isJoint(id)
  local mark = string.byte(id, 10) or 0
  return mark >= JOINT_FIRST and mark <= JOINT_LAST or mark >= JOINT_OTHER_FIRST and mark <= JOINT_OTHER_LAST
end
local function deliveryKey(id)
  return isJoint(id) and KEY_EVENT .. '/' .. string.sub(id, 10) or KEY_DELIVERY .. id
end
local function eventOf(id, stored) return stored or '/' .. string.sub(id, 10) end
