-- Raises the format by one, if it is still `from` and no process has registered since the caller read `registrations`.
-- It is one script so that a process that can't read the new format can't register in between. The record of the
-- installation is at the declared key itself. Returns 1 if it has raised the format, else 0.
--@include format-of

if formatOf('format') ~= from or (call('HGET', prefix, 'registrations') or '') ~= registrations then return 0 end
setFormat(from + 1, version)
call('HDEL', prefix, 'settled_since', 'looked_at', 'checked_since', 'raises_at')
return 1
