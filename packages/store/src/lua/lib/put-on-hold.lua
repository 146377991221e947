-- Gives an unfinished delivery the status held, puts it into the held lane, and removes the time of its retry. The
-- caller removes it from other lanes.
--@include delivery-key
--@include status

local function putOnHold(id, sub, created, st)
  local key = deliveryKey(id)
  call('HSET', key, 'st', HELD)
  call('HDEL', key, 'x', 'd')
  move(id, created, st, HELD)
  call('ZADD', KEY_HELD .. sub, created, id)
end
