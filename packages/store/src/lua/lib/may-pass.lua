-- Whether a delivery of this kind may be sent to an address with this status. To an active one any may, to a resuming
-- one its trial and test deliveries. `beginAttempt` asks the same.
local function mayPass(status, trial, id, kind)
  if status == ACTIVE then return true end
  return status == RESUMING and (trial == id or math.floor(tonumber(kind) / ENVIRONMENT_COUNT) == TYPE_TEST)
end
