-- Notes that a subscription has changed, so that consoles update their search. Drops the oldest changes.
local function announce(id)
  call('XADD', KEY_SUBSCRIPTION_CHANGES, 'MAXLEN', '~', MAX_CHANGES, '*', 's', id)
end
