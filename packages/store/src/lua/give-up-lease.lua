-- Ends a lease, if it is still the holder's.
if call('GET', key) == holder then call('DEL', key) end
