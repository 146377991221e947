-- Adds a notice for the notifier. Fields: s subscription, d delivery, m number of deliveries, r replay, w reason, b
-- since, n failures, l limit. Drops the oldest notices beyond MAX_NOTICES, and counts the dropped ones.
local function notify(nowMs, kind, ...)
  call('XADD', KEY_NOTICES, '*', 'k', kind, 'at', nowMs, ...)
  local dropped = call('XTRIM', KEY_NOTICES, 'MAXLEN', '~', MAX_NOTICES)
  if dropped > 0 then call('INCRBY', KEY_NOTICES_DROPPED, dropped) end
end
