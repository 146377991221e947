-- Returns {changes of subscriptions, counts}: up to `limit` changes from the entry at `position` on (that entry
-- included; '' for the oldest), the number of subscriptions with each status, and last the number of failing ones. It
-- is one script so that changes and counts are of the same moment: a wrong count tells a console that it has missed a
-- change.
local changes = call('XRANGE', KEY_SUBSCRIPTION_CHANGES, position == '' and '-' or position, '+', 'COUNT', limit)
local counts = {}
for status in statuses do counts[#counts + 1] = call('ZCARD', KEY_SUBSCRIPTIONS .. status) end
counts[#counts + 1] = call('ZCARD', KEY_FAILING)
return {changes, counts}
