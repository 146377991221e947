-- Registers a process in the record of the installation, which is at the declared key itself. The first process of all
-- creates the record, in the newest format; `isEmpty` says that it has found no data. It is one script so that two
-- first processes can't create different records, and a process can't register with a format that is being raised. A
-- process that can't read what is stored, or has another number of partitions, does not register. `known` is when the
-- installation began that the process has joined before: such a process creates no record, and joins no later one.
-- Works while Redis is full, once the record exists.
-- Returns {format, release that raised it, oldest stored format, number of partitions, time of Redis, when the
-- installation began, 1 if this process has created the record beside other keys, number of registrations}; {} if the
-- record that the process has joined is gone.
--@include format-of
--@include redis-ms

local hasOthers = false
if isEmpty and call('EXISTS', prefix) == 0 then
  -- BullMQ may have created one key for each partition already: only more keys belong to somebody else.
  hasOthers = call('DBSIZE') > tonumber(partitions)
  call('HSET', prefix, 'partitions', partitions, 'oldest_format', newest)
  setFormat(newest, version)
end
if call('HEXISTS', prefix, 'partitions') == 0 then
  if known ~= '' then return {} end
  call('HSET', prefix, 'partitions', partitions)
end
local begunAt = call('HGET', prefix, 'begun_at') or ''
if known ~= '' and begunAt ~= '' and tonumber(begunAt) > tonumber(known) then return {} end
local format = formatOf('format')
local oldestStored = formatOf('oldest_format')
local agreed = call('HGET', prefix, 'partition_count') or call('HGET', prefix, 'partitions')
if id ~= '' and format <= newest and oldestStored >= oldest and agreed == partitions then
  local process = cjson.decode(state)
  process.seenAtMs = redisMs()
  if redis.pcall('HSET', prefix, PROCESS_FIELD .. id, cjson.encode(process)) == 1 then
    call('HINCRBY', prefix, 'registrations', 1)
  end
  if begunAt == '' then
    local givenAt = known ~= '' and known or string.format('%.0f', redisMs())
    if redis.pcall('HSET', prefix, 'begun_at', givenAt) == 1 then begunAt = givenAt end
  end
end
return {format, call('HGET', prefix, 'raised_by') or '', oldestStored, agreed, redisMs(), begunAt, hasOthers and 1 or 0,
  call('HGET', prefix, 'registrations') or ''}
