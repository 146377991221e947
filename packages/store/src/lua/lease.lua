-- Acquires or extends a lease. Returns 1 to its holder, else 0.
local current = call('GET', key)
if current and current ~= holder then return 0 end
call('SET', key, holder, 'PX', lifeMs)
return 1
