-- What a script has read of addresses, by the key of the subscription: several jobs of a script may be for the same
-- address. `fields`: its ADDRESS_FIELDS as one text, for the worker, without the URL.
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
