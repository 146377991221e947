-- Appends an entry to a stream with the given time as its id, and drops entries older than `oldestMs`, if it is given.
-- Where the stream already has a later id (clocks differ between processes), the entry gets the next id of the stream.
local function append(stream, nowMs, oldestMs, ...)
  local reply
  if oldestMs then
    reply = redis.pcall('XADD', stream, 'MINID', '~', oldestMs, nowMs .. '-*', ...)
  else
    reply = redis.pcall('XADD', stream, nowMs .. '-*', ...)
  end
  if type(reply) == 'table' and reply.err then call('XADD', stream, '*', ...) end
end
