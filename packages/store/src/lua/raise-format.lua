-- Raises the format by one, unless another process has, or one has registered since `registrations` was read. Returns
-- whether it did. The key is the record of the installation.
--@include format-of

if formatOf('format') ~= from or (call('HGET', prefix, 'registrations') or '') ~= registrations then return 0 end
setFormat(from + 1, version)
call('HDEL', prefix, 'settled_since', 'looked_at', 'checked_since', 'raises_at', 'raise_waits_for')
return 1
