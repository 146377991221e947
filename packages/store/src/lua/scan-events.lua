-- Reads the next keys of a scan. Only the server that gave a cursor understands it: after a restart or a failover a
-- scan that went on would miss keys. Returns {cursor, id of the server's run, keys}, or {'restart', id of the run}.
local present = string.match(call('INFO', 'server'), 'run_id:(%x+)') or ''
if run ~= '' and run ~= present then return {'restart', present, {}} end
local found = call('SCAN', cursor, 'MATCH', pattern, 'COUNT', limit)
return {found[1], present, found[2]}
