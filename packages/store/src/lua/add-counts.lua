-- Adds to counters.
for field, count in counts do call('HINCRBY', key, field, count) end
call('PEXPIRE', key, lifeMs)
