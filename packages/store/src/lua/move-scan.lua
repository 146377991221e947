-- Moves the cursor of an erasure's pass over the events on, or ends the pass, unless another process has done so
-- already.
local key = KEY_ERASURE_PROGRESS .. id
local found = call('HMGET', key, 'passes', 'cursor')
if (found[1] or '0') ~= passes or (found[2] or '') ~= cursor then return end
if nextCursor == '' then
  call('HINCRBY', key, 'passes', 1)
  call('HDEL', key, 'cursor', 'run')
else
  call('HSET', key, 'cursor', nextCursor, 'run', run)
end
call('PEXPIRE', key, lifeMs)
