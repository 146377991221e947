-- Notes an event that an erasure has found, with its numbers of deliveries and of unfinished ones. `dueAtMs` is the
-- time of its acceptance, so that the oldest is erased first. It is one script so that an event found twice is counted
-- once; also if another process has noted and erased it since it was read. Returns nothing.
--@include is-erased

local events, progress = KEY_ERASURE_EVENTS .. id, KEY_ERASURE_PROGRESS .. id
if not isErased(event) and call('ZADD', events, 'NX', dueAtMs, event) == 1 then
  call('HINCRBY', progress, 'events', 1)
  call('HINCRBY', progress, 'deliveries', deliveries)
  call('HINCRBY', progress, 'unsent_found', unsent)
end
call('PEXPIRE', events, lifeMs)
call('PEXPIRE', progress, lifeMs)
