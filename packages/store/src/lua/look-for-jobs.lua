-- Says of each of these partitions when its next job is due: 0 if one waits, '' if there is none. Takes nothing.
--@include next-due-at

local reply = {}
for home in partitions do
  prefix = home
  if call('EXISTS', KEY_QUEUE .. 'wait', KEY_QUEUE .. 'prioritized') > 0 then
    reply[#reply + 1] = '0'
  else
    reply[#reply + 1] = nextDueAt()
  end
end
return reply
