-- Replaces an event by `text`, which has no payload. The key and its expiry stay, so the event's id remains taken.
-- Removes the entries in `search` ("list entry …") from the search index, at most `copies` of each (0: all), and adds
-- the counts to the erasure's progress once. It is one script so that a repeated call does not count again. Returns
-- nothing.
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
for list, entry in string.gmatch(search, '(%S+) (%S+)') do call('LREM', KEY_SEARCH .. list, copies, entry) end
if call('ZREM', KEY_ERASURE_EVENTS .. id, event) == 1 then
  local progress = KEY_ERASURE_PROGRESS .. id
  call('HINCRBY', progress, 'erased_events', 1)
  call('HINCRBY', progress, 'erased_deliveries', deliveries)
  call('HINCRBY', progress, 'ended_deliveries', ended)
  call('HINCRBY', progress, 'erased_responses', responses)
end
