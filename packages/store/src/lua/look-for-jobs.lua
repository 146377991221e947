-- Returns for each partition when its next job is due: 0 if a job waits, '' if there is none, or {the text of an
-- error}. An error in one partition does not affect the others. `home` is the partition's key prefix. Takes nothing. It
-- is one script to ask for many partitions with one call.
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
