-- Calls visit(id, token) for each active job, the newest first, until it returns true. `token` is the one in the job's
-- lock, false if the lock has expired. Returns whether a call returned true. Reads 500 locks with one command, because
-- Lua can't pass all as arguments of one call.
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
