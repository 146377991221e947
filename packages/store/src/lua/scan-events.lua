-- Does one SCAN for events. `run` is the run of the server that gave `cursor`; after a restart or a failover the cursor
-- would skip keys, so the scan must begin again. It is one script so that the run and the reply are of the same server.
-- Returns {next cursor, run of this server, keys}, or {'restart', run of this server, {}}.
local present = string.match(call('INFO', 'server'), 'run_id:(%x+)') or ''
if run ~= '' and run ~= present then return {'restart', present, {}} end
local found = call('SCAN', cursor, 'MATCH', pattern, 'COUNT', limit)
return {found[1], present, found[2]}
