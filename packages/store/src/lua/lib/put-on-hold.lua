-- Holds an unfinished delivery from now on: it leaves its status, and waits in the held lane with no time at which it is
-- due. Does not remove it from another lane.
--@include delivery-key
--@include status

local function putOnHold(id, sub, created, st)
  local key = deliveryKey(id)
  call('HSET', key, 'st', HELD)
  call('HDEL', key, 'x')
  move(id, created, st, HELD)
  call('ZADD', KEY_HELD .. sub, created, id)
end
