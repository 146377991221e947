-- Releases a lease if `holder` still has it. It is one script so that it never deletes the lease of another process.
-- Returns nothing.
if call('GET', key) == holder then call('DEL', key) end
