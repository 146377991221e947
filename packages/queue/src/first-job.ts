/** Adds the first job of a delivery inside a script of the store, so that a record and its job are one step and one round trip. */
import { QUEUE_NAME } from './job.ts';

/**
 * The Lua function `addFirstJob(deliveryId, subscriptionId, event, nowMs, isNew)` for a script that has `call` and
 * `prefix` (that of the delivery's partition, which may change between two calls), and `addToQueues()`, which the
 * script must call after the last of them, also if something has failed between them: no job is waiting before that. It
 * returns the first error, or nil: a queue that fails keeps no job out of the others. They do what BullMQ's `add` does
 * for a job without options, but write no entries into BullMQ's stream of events, which nobody reads, and keep no copy
 * of the id in `opts`. They wake a worker even if the queue is paused or as many jobs are active as operators allow: it
 * finds out with its next script. The job has no data if `event` is false: since stored format 2 the record of the
 * delivery says it. A job that exists is left unchanged; with `isNew` its delivery has just been made, so it has none.
 * `first-job.int.test.ts` compares the two, since an update of BullMQ may change what it stores.
 */
export const FIRST_JOB_LUA = `
local added = {}
local function addFirstJob(deliveryId, subscriptionId, event, nowMs, isNew)
  local key = prefix .. ':${QUEUE_NAME}:' .. deliveryId
  if not isNew and call('EXISTS', key) == 1 then return end
  call('HSET', key, 'name', subscriptionId, 'timestamp', nowMs)
  if event then call('HSET', key, 'data', '{"event_id":"' .. event .. '"}') end
  local ids = added[prefix]
  if not ids then
    ids = {queue = prefix .. ':${QUEUE_NAME}:'}
    added[prefix] = ids
    added[#added + 1] = ids
  end
  ids[#ids + 1] = deliveryId
end
local function addToQueue(ids)
  call('LPUSH', ids.queue .. 'wait', unpack(ids))
  call('ZADD', ids.queue .. 'marker', 0, '0')
end
local function addToQueues()
  local problem
  for _, ids in ipairs(added) do
    local isAdded, why = pcall(addToQueue, ids)
    if not isAdded then problem = problem or why end
  end
  return problem
end
`;
