-- The times of the newest entries of the succeeded that a script has seen, by partition.
local newestSucceededMs = {}

-- Adds a delivery to the index of the succeeded ones. In the stream an entry takes 44 bytes, in the sorted set 118. The
-- stream is in the order of creation, but for `l`: how many milliseconds its entry is late, because one that was made
-- later has succeeded before. If that is too long, or the delivery succeeded so late that its entry would not last as
-- long as its record, it goes into the sorted set.
local function listSucceeded(id, created, endedAtMs)
  if storedFormat >= COMPACT_FORMAT and endedAtMs - created <= GRACE_MS then
    local entry, newestMs = string.sub(id, 5), newestSucceededMs[prefix]
    if not newestMs or tonumber(created) >= tonumber(newestMs) then
      local reply = redis.pcall('XADD', KEY_SUCCEEDED, created .. '-*', 'd', entry, 'l', 0)
      if type(reply) ~= 'table' then
        newestSucceededMs[prefix] = created
        return
      end
      local newest = call('XREVRANGE', KEY_SUCCEEDED, '+', '-', 'COUNT', 1)[1]
      newestMs = newest and string.match(newest[1], '^%d+')
      newestSucceededMs[prefix] = newestMs
    end
    local lagMs = newestMs and newestMs - created
    if newestMs and lagMs >= 0 and lagMs <= MAX_LAG_MS then
      call('XADD', KEY_SUCCEEDED, newestMs .. '-*', 'd', entry, 'l', lagMs)
      return
    end
  end
  call('ZADD', INDEX_SUCCEEDED, created, id)
end
