-- Returns the key of a delivery: of its own record, or of the joint record of its event. The id of a delivery in a
-- joint record ends with the event's reference (jointRef of packages/core), so eventOf returns the reference even if
-- the record does not name it (`stored` is false).
local function isJoint(id)
  local mark = string.byte(id, DELIVERY_PREFIX + 1) or 0
  return mark >= JOINT_FIRST and mark <= JOINT_LAST or mark >= JOINT_OTHER_FIRST and mark <= JOINT_OTHER_LAST
end
local function deliveryKey(id)
  return isJoint(id) and KEY_EVENT .. '/' .. string.sub(id, DELIVERY_PREFIX + 1) or KEY_DELIVERY .. id
end
local function eventOf(id, stored) return stored or '/' .. string.sub(id, DELIVERY_PREFIX + 1) end
