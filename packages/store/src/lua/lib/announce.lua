-- Tells the consoles that a subscription has changed, so that their search finds it by its new fields. Drops the oldest changes.
local function announce(id)
  call('XADD', KEY_SUBSCRIPTION_CHANGES, 'MAXLEN', '~', MAX_CHANGES, '*', 's', id)
end
