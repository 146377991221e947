-- Splits the text of an event into the fields t1, t2… of a joint record, and returns their names and values as one
-- list. A field of more than 64 bytes would cost the whole record its compact form. No field ends within a character of
-- UTF-8.
local TEXT_FIELDS = {'t1', 't2', 't3', 't4', 't5', 't6'}
local function textFields(text)
  local fields, from, count = {}, 1, 0
  while from <= #text do
    local to = from + MAX_TEXT_FIELD - 1
    local after = string.byte(text, to + 1)
    while after and after >= 0x80 and after < 0xC0 do
      to = to - 1
      after = string.byte(text, to + 1)
    end
    count = count + 1
    -- The names are listed above because Lua is slow at turning numbers into text.
    fields[2 * count - 1] = TEXT_FIELDS[count] or 't' .. count
    fields[2 * count] = string.sub(text, from, to)
    from = to + 1
  end
  return fields
end
