-- Puts an active job back into the queue, where it is the next one to be taken. Ignores who has its lock.

local function putBack(id)
  call('DEL', KEY_QUEUE .. id .. ':lock')
  call('LREM', KEY_QUEUE .. 'active', -1, id)
  call('SREM', KEY_QUEUE .. 'stalled', id)
  call('RPUSH', KEY_QUEUE .. 'wait', id)
  call('ZADD', KEY_QUEUE .. 'marker', 0, '0')
end
