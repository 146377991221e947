-- Renews the lease of a worker on its jobs in this partition, if `owner` names one, and takes over the jobs of dead
-- workers. A check, at most one in `checkMs` (0: none now), adds one to every worker's count; a renewal resets the
-- worker's own. So an outage of Redis counts as one check, however long, and only the clock of Redis matters. If that
-- was set back, the last check does not prevent the next one. A worker whose count is `maxChecks` is dead for good
-- under this owner: its jobs are put back, at most `limit` of them in one call, then it is removed. A call that
-- `goesOn` puts back what the call before it left; if none comes, the next check does. All other calls look only at the
-- caller's own lease: if each of W workers looked at all, they would read W * W entries each second. Returns
-- {'renewed', 'new' (its jobs from before are lost) or 'dead'; jobs put back; 1 if more are left}.
--@include each-active
--@include put-back
local state = ''
if owner ~= '' then
  local checks = tonumber(call('HGET', KEY_WORKING, owner))
  state = not checks and 'new' or checks < maxChecks and 'renewed' or 'dead'
  if state ~= 'dead' then call('HSET', KEY_WORKING, owner, 0) end
end
if checkMs == 0 then return {state, 0, 0} end

local waitMs = call('PTTL', KEY_WORKING_CHECKED)
local isCheck = waitMs < 0 or waitMs > checkMs
if not isCheck and not goesOn then return {state, 0, 0} end
if isCheck then call('SET', KEY_WORKING_CHECKED, '', 'PX', checkMs) end
local dead, isDead = {}, {}
local workers = call('HGETALL', KEY_WORKING)
for i = 1, #workers, 2 do
  local checks = isCheck and call('HINCRBY', KEY_WORKING, workers[i], 1) or tonumber(workers[i + 1])
  if checks >= maxChecks then
    dead[#dead + 1] = workers[i]
    isDead[workers[i]] = true
  end
end
if #dead == 0 then return {state, 0, 0} end

local moved = 0
-- The newest job comes first: the job that is put back last is taken first.
local isMore = eachActive(function(id, token)
  -- A lock has expired if no worker at all was there for as long: the job is that of a dead one too.
  if token and not isDead[string.match(token, '^[^:]*')] then return end
  if moved == limit then return true end
  putBack(id)
  moved = moved + 1
end)
if isMore then return {state, moved, 1} end
call('HDEL', KEY_WORKING, unpack(dead))
return {state, moved, 0}
