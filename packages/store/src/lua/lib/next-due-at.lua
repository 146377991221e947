-- Returns when the next delayed job is due, in ms as a text; '' if there is none.
local function nextDueAt()
  local next = call('ZRANGE', KEY_QUEUE .. 'delayed', 0, 0, 'WITHSCORES')[2]
  return next and string.format('%.0f', math.floor(tonumber(next) / 0x1000)) or ''
end
