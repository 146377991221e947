-- Returns how many attempts failed with the errors stored for an address (see add-address-counts.lua).
local function errorTotal(errors)
  local total = 0
  for _, error in ipairs(errors) do total = total + error[2] end
  return total
end
