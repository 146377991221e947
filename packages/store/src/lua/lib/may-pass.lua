-- Whether a delivery of this kind may be sent to an address with this status: to an active one any, to a resuming one its
-- trial and test deliveries. `beginAttempt` asks the same.
local function mayPass(status, trial, id, kind)
  if status ~= RESUMING then return status == ACTIVE end
  return trial == id or math.floor(tonumber(kind) / ENVIRONMENT_COUNT) == TYPE_TEST
end
