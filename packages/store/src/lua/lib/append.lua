-- Appends an entry to a stream with the given time as its id, and drops entries older than `oldestMs`. Where the stream already has a
-- later id (clocks differ between processes), the entry gets the next id of the stream.
local function append(stream, nowMs, oldestMs, ...)
  local reply = redis.pcall('XADD', stream, 'MINID', '~', oldestMs, nowMs .. '-*', ...)
  if type(reply) == 'table' and reply.err then call('XADD', stream, '*', ...) end
end
