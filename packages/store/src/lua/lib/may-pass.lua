-- Whether a delivery of this kind may be sent to an address with this status. To an active one any may, to a resuming
-- one its trial, and to a paused or resuming one a test delivery. `beginAttempt` asks the same.
local function mayPass(status, trial, id, kind)
  if status == ACTIVE or status == RESUMING and trial == id then return true end
  return (status == PAUSED or status == RESUMING) and math.floor(tonumber(kind) / ENVIRONMENT_COUNT) == TYPE_TEST
end
