-- Adds a notice for the notifier. Fields: s subscription, d delivery, r replay, w reason, b since, n failures, l limit.
-- Drops the oldest notices beyond the limit.
local function notify(nowMs, kind, ...)
  call('XADD', KEY_NOTICES, 'MAXLEN', '~', MAX_NOTICES, '*', 'k', kind, 'at', nowMs, ...)
end
