-- Rate-limits overdue attempts per address: retries that are late (nobody could make them in time, so there are many), and everything
-- that was due before `dueBeforeMs`, the end of an outage. Each gets the next free turn of its address. While others wait for theirs, a
-- retry that missed its time by little is paced too, or all of those would go out at once. A first attempt (x is empty) is due when its
-- delivery is created. Returns when the attempt is due; 0 for a first attempt that is not paced.
local function pace(id, sub, x, created, nowMs, missedMs, lateMs, everyMs, dueBeforeMs)
  created = tonumber(created)
  x = tonumber(x) or created < dueBeforeMs and created or 0
  if x == 0 or nowMs - x <= missedMs then return x end
  local key = KEY_PACED .. sub
  local last = tonumber(call('GET', key))
  if not last and nowMs - x <= lateMs and x >= dueBeforeMs then return x end
  local turn = math.max(nowMs, (last or 0) + everyMs)
  call('SET', key, string.format('%.3f', turn), 'PX', math.ceil(turn - nowMs) + lateMs)
  call('HSET', KEY_DELIVERY .. id, 'x', math.ceil(turn))
  return math.ceil(turn)
end
