-- Reads the next keys of a scan. A cursor means something only to the server that gave it: after a restart or a failover the hash tables are other
-- ones, and a scan that went on would miss keys. Returns {cursor, id of the server's run, keys}, or {'restart', id of the run}.
local present = string.match(call('INFO', 'server'), 'run_id:(%x+)') or ''
if run ~= '' and run ~= present then return {'restart', present, {}} end
local found = call('SCAN', cursor, 'MATCH', pattern, 'COUNT', limit)
return {found[1], present, found[2]}
