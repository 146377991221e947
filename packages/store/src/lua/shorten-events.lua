-- Shortens the life of events whose deliveries have all succeeded. For an event with several deliveries, a string has a
-- bit for each one, by its `position`, until all `count` bits are set. It is one script so that the last of several
-- concurrent reports sees all bits. May be repeated: a bit that is set twice counts once. Returns nothing.
for event, count, position in deliveries do
  local isComplete = count == '1'
  if not isComplete then
    local bits = KEY_EVENT_SUCCEEDED .. event
    call('SETBIT', bits, position, 1)
    isComplete = call('BITCOUNT', bits) == tonumber(count)
    if isComplete then call('DEL', bits) else call('PEXPIREAT', bits, untilMs) end
  end
  if isComplete then call('PEXPIREAT', KEY_EVENT .. event, untilMs, 'LT') end
end
