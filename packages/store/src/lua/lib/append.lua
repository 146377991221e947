-- Appends an entry to a stream with `nowMs` as its time, and drops entries older than `oldestMs`, if that is given. If
-- the stream already has a later entry (clocks differ between processes), the new one gets the next id of the stream.
local function append(stream, nowMs, oldestMs, ...)
  local reply
  if oldestMs then
    reply = redis.pcall('XADD', stream, 'MINID', '~', oldestMs, nowMs .. '-*', ...)
  else
    reply = redis.pcall('XADD', stream, nowMs .. '-*', ...)
  end
  if type(reply) == 'table' and reply.err then call('XADD', stream, '*', ...) end
end
