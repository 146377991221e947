-- Reads the address of a subscription, once in each run of a script: several jobs may be for the same address. `fields`
-- has its ADDRESS_FIELDS for the worker, as one text, with an empty url.
--@include joined

local addresses = {}
local function readAddress(sub)
  local key = KEY_SUBSCRIPTION .. sub
  local address = addresses[key]
  if not address then
    local found = call('HMGET', key, ADDRESS_FIELDS, 'consecutive_failures')
    address = {key = key, status = found[1], url = found[2] or '', trial = found[6], failures = table.remove(found)}
    found[2] = ''
    address.fields = joined(found)
    addresses[key] = address
  end
  return address
end
