-- Makes a replay, a new delivery of the event of a failed one, and adds it to the chain of replays. `failed` has the
-- fields st, f, e, k, p of the failed delivery. Returns what make returns.
--@include delivery-key
--@include make

local function replay(sub, failedId, failed, firstId, newId, nowMs, oldestMs, lifeMs)
  local state = make(sub, newId, eventOf(failedId, failed[3]), failed[5], failed[4], nowMs, oldestMs, lifeMs, failedId)
  local chain = KEY_REPLAYS_OF .. firstId
  call('ZADD', chain, nowMs, newId)
  call('PEXPIRE', chain, lifeMs)
  return state
end
