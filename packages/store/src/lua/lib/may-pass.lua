-- Whether a delivery of this kind may be sent to an address with this status: any if it is active; the trial if it is resuming; a test
-- delivery also if it is paused or resuming. `beginAttempt` asks the same.
local function mayPass(status, trial, id, kind)
  if status == ACTIVE or status == RESUMING and trial == id then return true end
  return (status == PAUSED or status == RESUMING) and math.floor(tonumber(kind) / ENVIRONMENT_COUNT) == TYPE_TEST
end
