-- Takes reported notices out of the count of those that were dropped. It is one script so that the count never falls
-- below 0, where the reply was lost or two workers have reported the same ones. Returns nothing.
if call('DECRBY', KEY_NOTICES_DROPPED, count) <= 0 then call('DEL', KEY_NOTICES_DROPPED) end
