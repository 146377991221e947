-- The time of the newest entry in the stream of succeeded deliveries, by partition, as far as this script has read it.
local newestSucceededMs = {}

-- Adds a delivery to the index of succeeded ones: to a stream if possible, where an entry takes 44 bytes, else to a
-- sorted set, where it takes 118. The stream is in the order of creation. If a delivery that was made later has
-- succeeded before, the entry gets the time of that delivery, and `l` says how many milliseconds too late this is. The
-- entry goes into the sorted set if that is more than MAX_LAG_MS, or if the delivery ended so long after its creation
-- that its record outlives its entry in the stream of its address: lists of an address then look here.
local function listSucceeded(id, created, endedAtMs)
  if storedFormat >= COMPACT_FORMAT and endedAtMs - created <= GRACE_MS then
    local entry, newestMs = string.sub(id, #DELIVERY_ID_START + 1), newestSucceededMs[prefix]
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
