-- Replays: new deliveries of the events of failed ones.
--@include delivery-key
--@include make

-- Reads a delivery that is to be replayed. Returns what `replay` needs of it, and why it can't be replayed: 'gone',
-- 'not_failed', 'too_late' or 'erased'; nil if it can.
local function readFailed(id, nowMs, retentionMs)
  local found = call('HMGET', deliveryKey(id), 'st', 'f', 'e', 'k', 'p', 'r', 'z')
  local refusal = not found[1] and 'gone' or found[1] ~= FAILED and 'not_failed'
    or nowMs > found[2] + retentionMs and 'too_late' or (found[6] == REASON_ERASED or found[7]) and 'erased' or nil
  return {id = id, event = eventOf(id, found[3]), kind = found[4], eventPartition = found[5]}, refusal
end

-- Makes the replay of a delivery as readFailed returns it, and adds it to the chain of replays. Returns what make
-- returns.
local function replay(sub, failed, firstId, newId, nowMs, oldestMs, lifeMs)
  local state = make(sub, newId, failed.event, failed.eventPartition, failed.kind, nowMs, oldestMs, lifeMs, failed.id)
  local chain = KEY_REPLAYS_OF .. firstId
  call('ZADD', chain, nowMs, newId)
  call('PEXPIRE', chain, lifeMs)
  return state
end
