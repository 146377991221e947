-- Keeps the event in a joint record until `untilMs` at least, for a replay. Then its delivery ends before it, which the
-- field u says. A record without an expiry is that of an unfinished delivery, and lasts until that has ended.
local key = KEY_EVENT .. event
local endsAtMs = call('PEXPIRETIME', key)
if endsAtMs < 0 or endsAtMs >= untilMs then return end
call('HSETNX', key, 'u', endsAtMs)
call('PEXPIREAT', key, untilMs)
