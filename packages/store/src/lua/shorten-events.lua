-- Shortens the life of events whose deliveries have all succeeded. An event with several deliveries has a bit for each,
-- by its position, from the first success to the last. May be repeated: a bit that is set twice counts once.
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
