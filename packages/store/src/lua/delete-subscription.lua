-- Marks a subscription as deleted and removes it from all indexes and `rankings`; maintenance ends its deliveries. It
-- is one script so that no event matches a subscription that is half deleted. `deletion` identifies this call: sent
-- again because the reply was lost, it changes nothing and returns 1, also if the subscription was created again under
-- its key in between, at another time than `createdAtMs`. Returns 1, or 0 if there is no such subscription.
--@include audit
--@include announce

local key = KEY_SUBSCRIPTION .. id
local old = call('HMGET', key, 'status', 'topics', 'deletion', 'created_at')
if old[3] == deletion then return 1 end
if not old[1] or old[1] == DELETED then return 0 end
if (old[4] or '') ~= createdAtMs then return createdAtMs == '' and 0 or 1 end
call('SADD', KEY_CLOSING, id)
call('DEL', key)
call('HSET', key, 'status', DELETED, 'deletion', deletion)
call('ZREM', KEY_SUBSCRIPTIONS .. old[1], id)
for topic in string.gmatch(old[2] or '', '%S+') do call('SREM', KEY_TOPIC .. topic, id) end
call('INCRBY', KEY_TOPICS_VERSION, topicsStep)
call('SREM', KEY_RELEASE_HELD, id)
announce(id)
call('DEL', KEY_HEALTH .. id)
call('ZREM', KEY_FAILING, id)
call('SREM', KEY_RESUMING, id)
for ranking in rankings do call('ZREM', ranking, id) end
audit(nowMs, retentionMs, auditEntry)
return 1
