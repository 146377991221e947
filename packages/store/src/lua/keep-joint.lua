-- Extends the life of a joint record to `untilMs`, because a replay needs its event. The field u then says when its
-- delivery would have expired: readers hide the delivery from that time on. It is one script so that a second replay
-- does not take the extended expiry for that of the delivery. A record without an expiry belongs to an unfinished
-- delivery and needs nothing. Returns nothing.
local key = KEY_EVENT .. event
local endsAtMs = call('PEXPIRETIME', key)
if endsAtMs < 0 or endsAtMs >= untilMs then return end
call('HSETNX', key, 'u', endsAtMs)
call('PEXPIREAT', key, untilMs)
