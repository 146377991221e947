-- Puts a delivery into the parked lane, or into the overdue one if its attempt is overdue; park.lua says when. Returns 'parked', 'overdue', 'not_overdue' if it
-- was left because of `onlyOverdue`, or 'superseded' if the delivery has another job or ended. `generation`: that of the job.
local function park(id, generation, sub, st, newest, created, retryMs, nowMs, dueBeforeMs, onlyOverdue)
  if not st or st == SUCCEEDED or st == FAILED or st == HELD or (newest or '0') ~= generation then return 'superseded' end
  local lane = KEY_OVERDUE .. sub
  retryMs = tonumber(retryMs)
  local afterMs = call('EXISTS', lane) == 1 and MISSED_AFTER_MS or OVERDUE_AFTER_MS
  if retryMs and nowMs - retryMs > afterMs or (retryMs or tonumber(created)) < dueBeforeMs then
    call('ZADD', lane, created, id)
    call('SADD', KEY_RELEASE_OVERDUE, sub)
    return 'overdue'
  end
  if onlyOverdue then return 'not_overdue' end
  call('ZADD', KEY_PARKED .. sub, created, id)
  call('SADD', KEY_RELEASE_PARKED, sub)
  return 'parked'
end
