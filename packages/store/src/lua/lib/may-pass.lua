-- Returns whether a delivery may be sent to an address with this status: any delivery to an active one; only the trial
-- and test deliveries to a resuming one. `beginAttempt` (attempts.ts) decides the same.
local function mayPass(status, trial, id, kind)
  if status ~= RESUMING then return status == ACTIVE end
  return trial == id or math.floor(tonumber(kind) / ENVIRONMENT_COUNT) == TYPE_TEST
end
