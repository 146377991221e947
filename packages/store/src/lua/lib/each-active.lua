-- Calls visit(id, token) with each job that a worker has, the newest first, and the token in its lock (false where that
-- has expired), until it returns true. Returns whether it did. 500 locks are read in one call: Lua can't pass all.
local function eachActive(visit)
  local ids = call('LRANGE', KEY_QUEUE .. 'active', 0, -1)
  for first = 1, #ids, 500 do
    local keys = {}
    for i = first, math.min(first + 499, #ids) do keys[#keys + 1] = KEY_QUEUE .. ids[i] .. ':lock' end
    for i, token in ipairs(call('MGET', unpack(keys))) do
      if visit(ids[first + i - 1], token) then return true end
    end
  end
  return false
end
