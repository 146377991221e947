-- The text of what pcall has caught. An error of Redis begins with its code; one of Lua, which is a bug, gets Redis's for that.
local function errorText(caught)
  if type(caught) == 'table' then return caught.err end
  return string.match(caught, '^%u+ ') and caught or 'ERR ' .. caught
end
