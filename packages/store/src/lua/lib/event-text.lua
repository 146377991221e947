-- The text of an event in the fields t1, t2… of a joint record. A field of more than 64 bytes would cost the whole record its compact form; none
-- ends within a character of UTF-8.
local function textFields(text)
  local fields, from = {}, 1
  while from <= #text do
    local to = from + MAX_TEXT_FIELD - 1
    local after = string.byte(text, to + 1)
    while after and after >= 0x80 and after < 0xC0 do
      to = to - 1
      after = string.byte(text, to + 1)
    end
    fields[#fields + 1] = 't' .. (#fields / 2 + 1)
    fields[#fields + 1] = string.sub(text, from, to)
    from = to + 1
  end
  return fields
end
