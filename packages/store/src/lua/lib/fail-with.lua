-- Ends a script with an error that `pcall` has caught. One of Redis begins with its code, which `error` would hide behind another one.
local function failWith(problem)
  if type(problem) == 'string' and string.match(problem, '^%u+ ') then return redis.error_reply(problem) end
  error(problem, 0)
end
