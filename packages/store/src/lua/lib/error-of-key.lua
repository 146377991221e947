-- Returns the text of an error about one key that `pcall` has caught. Throws any other error: it is about Redis, and
-- the next record would have it too.
--@include error-text
local function errorOfKey(caught)
  local text = errorText(caught)
  if not string.find(text, '^ERR ') and not string.find(text, '^WRONGTYPE ') then error(caught) end
  return text
end
