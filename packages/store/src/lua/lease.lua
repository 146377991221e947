-- Acquires or extends a lease for `lifeMs`. It is one script so that two processes never have it at once. Returns 1 if
-- `holder` has it, else 0.
local current = call('GET', key)
if current and current ~= holder then return 0 end
call('SET', key, holder, 'PX', lifeMs)
return 1
