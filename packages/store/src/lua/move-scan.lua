-- Moves the cursor of a pass over the events on for `erasures`, each with the number of passes that it has done, or
-- ends their pass if `nextCursor` is empty. It is one script so that only one of two processes that read the same
-- `passes` and `cursor` moves an erasure. `run` is the run of the server that gave `nextCursor`. Returns nothing.
for id, passes in erasures do
  local key = KEY_ERASURE_PROGRESS .. id
  local found = call('HMGET', key, 'passes', 'cursor')
  if (found[1] or '0') == passes and (found[2] or '') == cursor then
    if nextCursor == '' then
      call('HINCRBY', key, 'passes', 1)
      call('HDEL', key, 'cursor', 'run')
    else
      call('HSET', key, 'cursor', nextCursor, 'run', run)
    end
    call('PEXPIRE', key, lifeMs)
  end
end
