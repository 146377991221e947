-- Moves the cursor of an erasure's pass over the events on, or ends the pass if `nextCursor` is empty. It is one script
-- so that only one of two processes that read the same `passes` and `cursor` moves it. `run` is the run of the server
-- that gave the cursor. Returns nothing.
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
