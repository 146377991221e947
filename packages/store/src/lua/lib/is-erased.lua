-- Whether the payload of an event has been erased: the last part of its first line says when
-- (packages/store/src/events/event-record.ts).
local function isErased(event)
  local key = KEY_EVENT .. event
  if string.byte(event) == JOINT_SLASH then
    return string.find(call('HGET', key, 't1') or '', '^%S+ %S+\n') ~= nil
  end
  return string.find(call('GET', key) or '', '^%S+ %S+ %S+ %S* %S+\n') ~= nil
end
