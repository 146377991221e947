-- Returns changes of subscriptions, from the entry at `position` on (itself included; '' for the first one), and how
-- many subscriptions have each status at the same moment, then how many fail.
local changes = call('XRANGE', KEY_SUBSCRIPTION_CHANGES, position == '' and '-' or position, '+', 'COUNT', limit)
local counts = {}
for status in statuses do counts[#counts + 1] = call('ZCARD', KEY_SUBSCRIPTIONS .. status) end
counts[#counts + 1] = call('ZCARD', KEY_FAILING)
return {changes, counts}
