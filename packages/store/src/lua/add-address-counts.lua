-- Adds to the counters of addresses in one hour, and ranks the addresses.
for key, subscriptionId, succeeded, failed, totalMs in addresses do
  local attempts = call('HINCRBY', key, 's', succeeded) + call('HINCRBY', key, 'f', failed)
  call('ZADD', slowKey, call('HINCRBY', key, 'm', totalMs) / attempts, subscriptionId)
  call('PEXPIRE', key, lifeMs)
  if failed ~= '0' then call('ZINCRBY', failingKey, failed, subscriptionId) end
end
call('PEXPIRE', failingKey, lifeMs)
call('PEXPIRE', slowKey, lifeMs)
