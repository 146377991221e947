-- Renews the lease of a worker on its jobs in this partition, if `owner` is given, and takes over the jobs of dead
-- workers. It is one script so that a worker can't renew its lease while its jobs are put back.
-- A check adds one to the count of each worker, and a renewal resets the worker's own count to 0. There is at most one
-- check in `checkMs` (0: none now), so an outage of Redis counts as one check however long it is, and only the clock of
-- Redis matters. A worker whose count reaches `maxChecks` is dead and can't renew any more. Its jobs are put back, at
-- most `limit` in one call; then it is removed. A call with `goesOn` puts back what the last call left; if none comes,
-- the next check does. A call that makes no check reads only the caller's own count: if each of W workers read all,
-- that would be W * W entries a second.
-- A caller without a lease, or whose lease is dead, gets one as `nextOwner`: sent again because the reply was lost, the
-- script then says again that jobs taken as `owner` are lost.
-- Returns {state of the caller's lease; jobs put back; 1 if more are left}. The state is 'renewed', 'lost' (it has one
-- as `nextOwner` now), or '' without an `owner`.
--@include each-active
--@include put-back
local state = ''
if owner ~= '' then
  local checks = tonumber(call('HGET', KEY_WORKING, owner))
  state = checks and checks < maxChecks and 'renewed' or 'lost'
  call('HSET', KEY_WORKING, state == 'lost' and nextOwner or owner, 0)
end
if checkMs == 0 then return {state, 0, 0} end

local waitMs = call('PTTL', KEY_WORKING_CHECKED)
-- If the clock of Redis was set back, the mark of the last check lasts longer than `checkMs`: it must not prevent the
-- next check.
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
-- The newest job is put back first and the oldest last, so the oldest is taken first.
local isMore = eachActive(function(id, token)
  -- A job without a lock belongs to a dead worker too: its lock has expired because no worker was there to take it
  -- over.
  if token and not isDead[string.match(token, '^[^:]*')] then return end
  if moved == limit then return true end
  putBack(id)
  moved = moved + 1
end)
if isMore then return {state, moved, 1} end
call('HDEL', KEY_WORKING, unpack(dead))
return {state, moved, 0}
