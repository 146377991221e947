-- Returns a format in the record of the installation. Release 0.1.0 stores none: it writes the first format.
local function formatOf(field)
  return tonumber(call('HGET', prefix, field) or FIRST_FORMAT)
end

-- Puts a format in force. Release 0.1.0 knows no formats, but compares `partitions` with its setting PARTITIONS. From
-- the second format on, a text takes the place of the number, so 0.1.0 refuses to start.
local function setFormat(format, release)
  call('HSET', prefix, 'format', format, 'raised_by', release)
  if format == FIRST_FORMAT or call('HEXISTS', prefix, 'partition_count') == 1 then return end
  call('HSET', prefix, 'partition_count', call('HGET', prefix, 'partitions'))
  call('HSET', prefix, 'partitions', 'see docs/upgrades.md: this data needs a later release')
end
