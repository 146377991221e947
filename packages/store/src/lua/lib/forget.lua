-- Removes a delivery that is still there although its event had expired, with all that says where it waits: the event
-- was published again, and its new delivery has the same id. Leaves only the number of the next generation, so that
-- jobs of the old delivery, one that a worker has included, do nothing.
--@include delivery-key
--@include current-job
--@include count-parked

local function forget(id, sub)
  local key = deliveryKey(id)
  local generation = call('HGET', key, 'g')
  dropRetry(id, generation)
  call('DEL', key, KEY_RESPONSES .. id, KEY_REPLAYS_OF .. id)
  call('HSET', key, 'g', (generation or 0) + 1)
  local places = {INDEX_PENDING, INDEX_WAITING_FOR_RETRY, INDEX_HELD, INDEX_SUCCEEDED, INDEX_FAILED}
  for _, lane in ipairs({KEY_HELD, KEY_PARKED, KEY_OVERDUE, KEY_FAILED}) do places[#places + 1] = lane .. sub end
  for _, place in ipairs(places) do call('ZREM', place, id) end
  parkedCounts[KEY_PARKED .. sub] = nil
end
