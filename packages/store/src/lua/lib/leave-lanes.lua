-- Removes a delivery from all lanes of its address.
local function leaveLanes(id, sub)
  call('ZREM', KEY_HELD .. sub, id)
  call('ZREM', KEY_PARKED .. sub, id)
  call('ZREM', KEY_OVERDUE .. sub, id)
end
