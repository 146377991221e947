-- Adds to the counters in a hash, and sets its expiry. It is one script so that the counters never exist without an
-- expiry. Returns nothing. Sent again because the reply was lost, it counts twice: the statistics are estimates.
for field, count in counts do call('HINCRBY', key, field, count) end
call('PEXPIRE', key, lifeMs)
