-- Returns the text of an error that `pcall` has caught. An error of Redis begins with a code in capitals; an error of
-- Lua itself, which is a bug, gets the code ERR.
local function errorText(caught)
  if type(caught) == 'table' then return caught.err end
  return string.match(caught, '^%u+ ') and caught or 'ERR ' .. caught
end
