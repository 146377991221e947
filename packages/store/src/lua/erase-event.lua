-- Replaces an event by its text without payload, under the same key: its id stays known as long as before. Removes it
-- from the search index, and counts it for the erasure, once.
--@include event-text

local key = KEY_EVENT .. event
if string.byte(event) ~= JOINT_SLASH then
  call('SET', key, text, 'XX', 'KEEPTTL')
elseif call('EXISTS', key) == 1 then
  for _, field in ipairs(call('HKEYS', key)) do
    if string.match(field, '^t%d+$') then call('HDEL', key, field) end
  end
  call('HSET', key, unpack(textFields(text)))
end
for list, entry in string.gmatch(search, '(%S+) (%S+)') do call('LREM', KEY_SEARCH .. list, 0, entry) end
if call('ZREM', KEY_ERASURE_EVENTS .. id, event) == 1 then
  local progress = KEY_ERASURE_PROGRESS .. id
  call('HINCRBY', progress, 'erased_events', 1)
  call('HINCRBY', progress, 'erased_deliveries', deliveries)
  call('HINCRBY', progress, 'ended_deliveries', ended)
  call('HINCRBY', progress, 'erased_responses', responses)
end
