-- Says of each of these partitions when its next job is due: 0 if one waits, '' if there is none; or {the text of an
-- error}, which is that partition's alone. Takes nothing.
--@include next-due-at
--@include error-text

local function look()
  return call('EXISTS', KEY_QUEUE .. 'wait', KEY_QUEUE .. 'prioritized') > 0 and '0' or nextDueAt()
end

local reply = {}
for home in partitions do
  prefix = home
  local isDone, due = pcall(look)
  reply[#reply + 1] = isDone and due or {errorText(due)}
end
return reply
