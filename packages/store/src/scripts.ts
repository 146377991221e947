/**
 * The Lua scripts: each is one step that must happen as a whole. What calls them is in the file named after the data they touch.
 *
 * Rules they keep: every key of a script belongs to one partition, whose beginning is KEYS[1]; the first write is one that a
 * full Redis refuses (HSET, SET, ZADD, SADD), so that out of memory means nothing was written.
 *
 * Fields of a delivery's hash are short because there are millions: e event reference, s subscription, k type and environment, st status,
 * n attempts recorded, g generation of its job, c created, x next attempt, f finished (left out where the end of the last attempt
 * says it), r failure reason, o replay of, m attempts allowed (left out where it is the default), a1…aN attempts.
 */

const LIB = `
local call, base = redis.call, KEYS[1]
local PENDING, WAITING, HELD, SUCCEEDED, FAILED = '0', '1', '2', '3', '4'
local INDEX = {['0']=':by_status:pending', ['1']=':by_status:waiting_for_retry', ['2']=':by_status:held', ['3']=':by_status:succeeded', ['4']=':by_status:failed'}
local function move(id, created, from, to)
  if from ~= to then
    call('ZADD', base .. INDEX[to], created, id)
    if from then call('ZREM', base .. INDEX[from], id) end
  end
end
-- Appends to a stream under the given time, dropping what is older than asked for; if another process's clock is ahead of ours, under
-- the stream's own next id.
local function append(stream, now, oldest, ...)
  local ok = redis.pcall('XADD', stream, 'MINID', '~', oldest, now .. '-*', ...)
  if type(ok) == 'table' and ok.err then call('XADD', stream, '*', ...) end
end
local function finished(st) return st == SUCCEEDED or st == FAILED end
`;

/**
 * Leaves a notice for the notifier, with what it is about: s subscription, d delivery, r replay, w why. If nobody fetches them, the
 * oldest go.
 */
const NOTIFY = `
local function notify(now, kind, ...)
  redis.call('XADD', KEYS[1] .. ':notices', 'MAXLEN', '~', 100000, '*', 'k', kind, 'at', now, ...)
end
`;

/** Writes an entry (JSON) into the audit trail. */
const AUDIT = `
local function audit(now, retention, entry)
  append(base .. ':audit', now, math.max(0, now - retention), 'e', entry)
  call('PEXPIRE', base .. ':audit', retention + 86400000)
end
`;

/**
 * Rate-limits the late attempts of an address: a retry that nobody could make in time (it is one of many), and whatever was due before the
 * end of an outage. Each gets the next free time of its address. As long as some wait for theirs, a retry that missed its time by little is
 * paced too, or those that missed it while workers were busy would go out all at once. A first attempt (x is empty) is due when its
 * delivery is created. Returns when the attempt is due.
 */
const PACE = `
local function pace(id, sub, x, created, now, missed, late, every, before)
  created = tonumber(created)
  x = tonumber(x) or created < before and created or 0
  if x == 0 or now - x <= missed then return x end
  local key = base .. ':paced:' .. sub
  local last = tonumber(call('GET', key))
  if not last and now - x <= late and x >= before then return x end
  local turn = math.max(now, (last or 0) + every)
  call('SET', key, string.format('%.3f', turn), 'PX', math.ceil(turn - now) + late)
  call('HSET', base .. ':delivery:' .. id, 'x', math.ceil(turn))
  return math.ceil(turn)
end
`;

/** Ends a delivery as failed. */
const FAIL = `${NOTIFY}
local function fail(id, st, sub, created, reason, now, expires_at, retention)
  local key = base .. ':delivery:' .. id
  call('HSET', key, 'st', FAILED, 'f', now, 'r', reason)
  call('HDEL', key, 'x')
  call('PEXPIREAT', key, expires_at)
  move(id, created, st, FAILED)
  local failed = base .. ':failed:' .. sub
  call('ZADD', failed, created, id)
  call('ZREMRANGEBYSCORE', failed, '-inf', now - 2 * retention - 86400000)
  call('PEXPIREAT', failed, expires_at)
  if reason ~= 'subscription_deleted' then notify(now, 'delivery.failed', 's', sub, 'd', id, 'w', reason) end
end
`;

/** Makes one delivery that is not there yet, unless its subscription is gone; answers its state (see createDeliveries). */
const MAKE = `
local function make(sub, id, event, kind, now, oldest, life, replay_of)
  local key = base .. ':delivery:' .. id
  local status = call('HGET', base .. ':subscription:' .. sub, 'status')
  if not status or status == 'deleted' then return 'none' end
  local st = status == 'active' and PENDING or HELD
  call('HSET', key, 'e', event, 's', sub, 'k', kind, 'st', st, 'n', 0, 'c', now)
  if replay_of ~= '' then call('HSET', key, 'o', replay_of) end
  call('ZADD', base .. INDEX[st], now, id)
  local stream = base .. ':by_subscription:' .. sub
  append(stream, now, oldest, 'd', id)
  call('PEXPIRE', stream, life)
  if st == HELD then
    call('ZADD', base .. ':held:' .. sub, now, id)
    return 'held'
  end
  -- Where many wait for a place already, one more job in the queue would only hold up other addresses.
  local parked = base .. ':parked:' .. sub
  if call('ZCARD', parked) < 100 then return 'pending' end
  call('ZADD', parked, now, id)
  return 'made'
end
`;

/** Makes a replay's delivery of the event of d (a failed one's record: status, failed at, event, kind), and ties it to the others. */
const REPLAY = `${MAKE}
local function replay(sub, of, d, first, id, now, oldest, life)
  local state = make(sub, id, d[3], d[4], now, oldest, life, of)
  local chain = base .. ':replays_of:' .. first
  call('ZADD', chain, now, id)
  call('PEXPIRE', chain, life)
  return state
end
`;

export const scripts = {
  /**
   * Stores an event unless its id is taken in its environment, and makes those of its deliveries that live in the same partition.
   * Returns a list: the text stored before (and a second item if it is stored under its unscoped key), or '' and the states of the
   * deliveries (see createDeliveries). ARGV: event key, its unscoped key or '', text, expires at, fanning-out key or '', event
   * reference, kind, now, oldest kept in streams, stream life, (subscription, delivery)…
   */
  storeEvent: `${LIB}${MAKE}
local unscoped = ARGV[2] ~= '' and call('GET', ARGV[2])
-- The text begins with the kind in base 36; its lowest digit in base 2 is the environment.
if unscoped and tonumber(string.match(unscoped, '^%w+'), 36) % 2 == tonumber(ARGV[7]) % 2 then return {unscoped, 'unscoped'} end
if not call('SET', ARGV[1], ARGV[3], 'NX', 'PXAT', ARGV[4]) then return {call('GET', ARGV[1])} end
if ARGV[5] ~= '' then call('ZADD', ARGV[5], ARGV[8], ARGV[6]) end
local answers = {''}
for i = 11, #ARGV, 2 do
  answers[#answers + 1] = make(ARGV[i], ARGV[i + 1], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], '')
end
return answers
`,

  /**
   * Makes the deliveries of one event to subscriptions of one partition; one that is there already is left alone, so a
   * repeat fills gaps. Answers for each: 'pending' (its first job must exist), 'held', 'made' (parked, or further on), or 'none'
   * (no such subscription any more). ARGV: event id, kind, now, oldest kept in streams, stream life, replay of, (subscription, delivery)…
   */
  createDeliveries: `${LIB}${MAKE}
local answers = {}
for i = 7, #ARGV, 2 do
  local there = call('HMGET', base .. ':delivery:' .. ARGV[i + 1], 'st', 'g')
  local first = there[1] == PENDING and not there[2] and not call('ZSCORE', base .. ':parked:' .. ARGV[i], ARGV[i + 1])
  answers[#answers + 1] = not there[1] and make(ARGV[i], ARGV[i + 1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6])
    or there[1] == HELD and 'held' or first and 'pending' or 'made'
end
return answers
`,

  /**
   * Holds a delivery whose address was found not active, if it still is not. Answers 1 where the delivery is held now, 0 where
   * the job must look again. ARGV: delivery id, the job's generation, subscription.
   */
  hold: `${LIB}
local id, sub = ARGV[1], ARGV[3]
local key = base .. ':delivery:' .. id
local d = call('HMGET', key, 'st', 'g', 'c')
if not d[1] or finished(d[1]) or (d[2] or '0') ~= ARGV[2] then return 0 end
local status = call('HGET', base .. ':subscription:' .. sub, 'status')
if not status or status == 'deleted' or status == 'active' then return 0 end
if d[1] ~= HELD then
  call('HSET', key, 'st', HELD)
  call('HDEL', key, 'x')
  move(id, d[3], d[1], HELD)
  call('ZADD', base .. ':held:' .. sub, d[3], id)
end
return 1
`,

  /**
   * Records attempt n and what it means, once: a second call with the same n changes nothing. Counts consecutive failures
   * and pauses the address at the limit (specification 3). Answers {recorded|over|repeated, failures, paused now?, parked}.
   * ARGV: id, n, kind, attempt, ended at, next attempt at, reason, expires at, pause after, attempts allowed, retention.
   */
  recordAttempt: `
local call, base, id = redis.call, KEYS[1], ARGV[1]
local key = base .. ':delivery:' .. id
local d = call('HMGET', key, 'st', 'n', 's', 'c', 'x')
local st, sub, created = d[1], d[3], d[4]
if not st or st == '3' or st == '4' then return {'over', 0, 0, 0} end
local number = tonumber(ARGV[2])
local parked = call('ZCARD', base .. ':parked:' .. sub)
if tonumber(d[2]) ~= number - 1 then return {'repeated', 0, 0, parked} end
local subscription = base .. ':subscription:' .. sub
if ARGV[3] == 'succeeded' then
  -- The common case comes first and needs none of the functions below.
  call('HSET', key, 'st', '3', 'n', number, 'a' .. number, ARGV[4])
  if st == '2' then call('ZREM', base .. ':held:' .. sub, id) end
  if d[5] then call('HDEL', key, 'x') end
  if ARGV[10] ~= '' then call('HSET', key, 'm', ARGV[10]) end
  call('PEXPIREAT', key, ARGV[8])
  call('ZADD', base .. ':by_status:succeeded', created, id)
  local from = st == '0' and 'pending' or st == '1' and 'waiting_for_retry' or 'held'
  call('ZREM', base .. ':by_status:' .. from, id)
  local failures = call('HGET', subscription, 'consecutive_failures')
  if failures and failures ~= '0' then call('HSET', subscription, 'consecutive_failures', 0) end
  return {'recorded', 0, 0, parked}
end
${LIB}${AUDIT}${FAIL}
call('HSET', key, 'n', number, 'a' .. number, ARGV[4])
-- Another job of it was held while this attempt was in flight.
if st == HELD then call('ZREM', base .. ':held:' .. sub, id) end
if ARGV[10] ~= '' then call('HSET', key, 'm', ARGV[10]) end
if ARGV[3] == 'retry' then
  call('HSET', key, 'st', WAITING, 'x', ARGV[6])
  move(id, created, st, WAITING)
  return {'recorded', 0, 0, parked}
end
local now = tonumber(ARGV[5])
fail(id, st, sub, created, ARGV[7], now, ARGV[8], tonumber(ARGV[11]))
local s = call('HMGET', subscription, 'status', 'created_at')
if not s[1] or s[1] == 'deleted' then return {'recorded', 0, 0, parked} end
local failures = call('HINCRBY', subscription, 'consecutive_failures', 1)
if failures >= tonumber(ARGV[9]) and s[1] == 'active' then
  call('HSET', subscription, 'status', 'paused', 'status_reason', 'consecutive_failures', 'updated_at', now)
  call('HINCRBY', subscription, 'revision', 1)
  call('ZADD', base .. ':subscriptions:paused', s[2], sub)
  call('ZREM', base .. ':subscriptions:active', sub)
  notify(now, 'subscription.paused', 's', sub, 'w', 'consecutive_failures')
  audit(now, tonumber(ARGV[11]), cjson.encode({action = 'subscription.paused', subscriptionId = sub, detail = {reason = 'consecutive_failures', consecutive_failures = failures}}))
  return {'recorded', failures, 1, parked}
end
return {'recorded', failures, 0, parked}
`,

  /** Ends unfinished deliveries without an attempt. Answers (delivery, generation)… ARGV: reason, now, expires at, retention, the number of the only status to end or '', ids… */
  endDeliveries: `${LIB}${FAIL}
local ended = {}
for i = 6, #ARGV do
  local d = redis.call('HMGET', base .. ':delivery:' .. ARGV[i], 'st', 's', 'c', 'g')
  if d[1] and not finished(d[1]) and (ARGV[5] == '' or d[1] == ARGV[5]) then
    fail(ARGV[i], d[1], d[2], d[3], ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]))
    redis.call('ZREM', base .. ':held:' .. d[2], ARGV[i])
    redis.call('ZREM', base .. ':parked:' .. d[2], ARGV[i])
    ended[#ended + 1] = ARGV[i]
    ended[#ended + 1] = d[4] or '0'
  end
end
return ended
`,

  /** Paces an attempt if it is late, and returns when it is due (0: now). ARGV: id, subscription, now, missed after, late after, milliseconds between two, paced if due before. */
  pace: `${LIB}${PACE}
local d = redis.call('HMGET', base .. ':delivery:' .. ARGV[1], 'st', 'x', 'c')
if d[1] ~= WAITING and d[1] ~= PENDING then return 0 end
return pace(ARGV[1], ARGV[2], d[2], d[3], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]))
`,

  /**
   * Puts a delivery whose address is busy into the parked lane, so that its job can go; but a late retry whose turn is still to come
   * keeps its job. Answers 1 where it is parked, 0 where the job is no longer the delivery's, or when the job is due.
   * ARGV: id, generation, subscription, now, missed after, late after, milliseconds between two, paced if due before.
   */
  park: `${LIB}${PACE}
local d = redis.call('HMGET', base .. ':delivery:' .. ARGV[1], 'st', 'g', 'c', 'x')
if not d[1] or finished(d[1]) or d[1] == HELD or (d[2] or '0') ~= ARGV[2] then return 0 end
local due = pace(ARGV[1], ARGV[3], d[4], d[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]))
if due > tonumber(ARGV[4]) then return due end
redis.call('ZADD', base .. ':parked:' .. ARGV[3], d[3], ARGV[1])
redis.call('SADD', base .. ':release_parked', ARGV[3])
return 1
`,

  /**
   * Takes up to n deliveries out of a lane, oldest first, each with a new generation whose job the caller adds next (the
   * sweep for lost jobs does it otherwise). Nothing leaves the held lane unless the address is active; what is parked at an address that is
   * not active is held from now on, 500 at a time, and answered with the generation -1.
   * Answers (delivery, generation, event, attempts recorded)… ARGV: lane, subscription, n.
   */
  release: `${LIB}
local lane_name, sub = ARGV[1], ARGV[2]
local lane, index = base .. ':' .. lane_name .. ':' .. sub, base .. ':release_' .. lane_name
local status = redis.call('HGET', base .. ':subscription:' .. sub, 'status')
local hold = lane_name == 'parked' and status and status ~= 'active' and status ~= 'deleted'
if lane_name == 'held' and status ~= 'active' then
  redis.call('SREM', index, sub)
  return {}
end
local out = {}
for _, id in ipairs(redis.call('ZRANGE', lane, 0, hold and 499 or tonumber(ARGV[3]) - 1)) do
  local key = base .. ':delivery:' .. id
  local d = redis.call('HMGET', key, 'st', 'n', 'c', 'e')
  if d[1] and not finished(d[1]) then
    out[#out + 1] = id
    if hold then
      redis.call('HSET', key, 'st', HELD)
      redis.call('HDEL', key, 'x')
      move(id, d[3], d[1], HELD)
      redis.call('ZADD', base .. ':held:' .. sub, d[3], id)
      out[#out + 1] = '-1'
    else
      out[#out + 1] = tostring(redis.call('HINCRBY', key, 'g', 1))
    end
    out[#out + 1] = d[4]
    out[#out + 1] = d[2]
    if d[1] == HELD and not hold then
      local st = d[2] == '0' and PENDING or WAITING
      redis.call('HSET', key, 'st', st)
      move(id, d[3], HELD, st)
    end
  end
  redis.call('ZREM', lane, id)
end
if redis.call('EXISTS', lane) == 0 then redis.call('SREM', index, sub) end
return out
`,

  /**
   * Writes a subscription as a whole, with the indexes that follow from it. Answers its new revision, or -1 where it is not
   * at the expected one any more ('' for a new subscription). A subscription that becomes active has its held deliveries released.
   * ARGV: id, expected revision, status, created at, topics joined by spaces, now, retention, audit entry or '', why it has its status,
   * field, value, …
   */
  saveSubscription: `${LIB}${AUDIT}${NOTIFY}
local id, status, created, topics = ARGV[1], ARGV[3], ARGV[4], ARGV[5]
local key = base .. ':subscription:' .. id
local old = call('HMGET', key, 'revision', 'status', 'topics')
if (old[1] or '') ~= ARGV[2] or old[2] == 'deleted' then return -1 end
call('HSET', key, 'status', status, 'created_at', created, 'topics', topics, unpack(ARGV, 10))
local revision = call('HINCRBY', key, 'revision', 1)
if old[2] ~= status then
  call('ZADD', base .. ':subscriptions:' .. status, created, id)
  if old[2] then call('ZREM', base .. ':subscriptions:' .. old[2], id) end
  if status == 'paused' or status == 'refused' then
    notify(ARGV[6], 'subscription.' .. status, 's', id, 'w', ARGV[9])
  end
end
if (old[3] or '') ~= topics then
  for topic in string.gmatch(old[3] or '', '%S+') do call('SREM', base .. ':topic:' .. topic, id) end
  for topic in string.gmatch(topics, '%S+') do call('SADD', base .. ':topic:' .. topic, id) end
end
if status == 'active' and call('EXISTS', base .. ':held:' .. id) == 1 then
  call('SADD', base .. ':release_held', id)
end
if ARGV[8] ~= '' then audit(tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]) end
return revision
`,

  /** Takes a subscription out of everything but the work of ending its deliveries. Answers 1, or 0 where there is none. ARGV: id, now, retention, audit entry. */
  deleteSubscription: `${LIB}${AUDIT}
local id = ARGV[1]
local key = base .. ':subscription:' .. id
local old = call('HMGET', key, 'status', 'topics')
if not old[1] or old[1] == 'deleted' then return 0 end
call('SADD', base .. ':closing', id)
call('DEL', key)
call('HSET', key, 'status', 'deleted')
call('ZREM', base .. ':subscriptions:' .. old[1], id)
for topic in string.gmatch(old[2] or '', '%S+') do call('SREM', base .. ':topic:' .. topic, id) end
call('SREM', base .. ':release_held', id)
audit(tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4])
return 1
`,

  /**
   * Makes a new delivery of the event of a failed one (specification 3.1). Answers the state of what it made (see createDeliveries), or why
   * it made nothing: 'gone', 'not_failed', 'too_late', or 'not_active'. ARGV: subscription, failed delivery, first delivery of event and
   * address, new delivery, now, oldest kept in streams, stream life, retention, audit entry.
   */
  replayDelivery: `${LIB}${REPLAY}${AUDIT}
local sub, of, first, id, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local d = call('HMGET', base .. ':delivery:' .. of, 'st', 'f', 'e', 'k')
if not d[1] then return 'gone' end
if d[1] ~= FAILED then return 'not_failed' end
if tonumber(now) > tonumber(d[2]) + tonumber(ARGV[8]) then return 'too_late' end
if call('HGET', base .. ':subscription:' .. sub, 'status') ~= 'active' then return 'not_active' end
local state = replay(sub, of, d, first, id, now, ARGV[6], ARGV[7])
audit(tonumber(now), tonumber(ARGV[8]), ARGV[9])
return state
`,

  /** Begins a bulk replay. Answers 1, 0 where there is no such subscription, or -1 where it is not active. ARGV: replay, subscription, now, retention, audit entry, field, value, … */
  startReplay: `${LIB}${AUDIT}
local id, sub, now, retention = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local status = call('HGET', base .. ':subscription:' .. sub, 'status')
if not status or status == 'deleted' then return 0 end
if status ~= 'active' then return -1 end
call('HSET', base .. ':replay:' .. id, 'subscription', sub, 'status', 'running', unpack(ARGV, 6))
call('SADD', base .. ':replaying', id)
local replays = base .. ':replays'
call('ZADD', replays, now, id)
call('ZREMRANGEBYSCORE', replays, '-inf', now - 2 * retention)
audit(now, retention, ARGV[5])
return 1
`,

  /**
   * One step of a bulk replay: new deliveries of some failed ones, the counts, and how far it got, all or nothing. A step that another
   * process has done already (its cursor has moved on) changes nothing. The new deliveries wait in the parked lane, so that
   * any number of them puts nothing into the queue ahead of other addresses. Answers 1 where it was done now.
   * ARGV: replay, cursor before, cursor after, '1' at the end, number of candidates, now, oldest kept in streams, stream life, retention,
   * (failed delivery, first delivery of event and address, new delivery)…
   */
  stepReplay: `${LIB}${REPLAY}${NOTIFY}
local id, now, retention = ARGV[1], ARGV[6], tonumber(ARGV[9])
local key = base .. ':replay:' .. id
local r = call('HMGET', key, 'subscription', 'status', 'cursor', 'replayed', 'skipped')
if r[2] ~= 'running' or (r[3] or '') ~= ARGV[2] then return 0 end
local sub, replayed = r[1], 0
local status = call('HGET', base .. ':subscription:' .. sub, 'status')
call('HSET', key, 'cursor', ARGV[3])
if not status or status == 'deleted' then
  call('HSET', key, 'status', 'failed', 'finished_at', now)
  notify(now, 'replay.failed', 's', sub, 'r', id, 'w', 'subscription_deleted')
else
  for i = 10, #ARGV, 3 do
    local of, first, new = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    local d = call('HMGET', base .. ':delivery:' .. of, 'st', 'f', 'e', 'k')
    local latest = call('ZRANGE', base .. ':replays_of:' .. first, -1, -1)[1]
    local latest_st = latest and call('HGET', base .. ':delivery:' .. latest, 'st')
    if d[1] == FAILED and tonumber(now) <= tonumber(d[2]) + retention and (not latest_st or latest_st == FAILED)
      and call('EXISTS', base .. ':delivery:' .. new) == 0 then
      if replay(sub, of, d, first, new, now, ARGV[7], ARGV[8]) == 'pending' then
        call('ZADD', base .. ':parked:' .. sub, now, new)
        call('SADD', base .. ':release_parked', sub)
      end
      replayed = replayed + 1
    end
  end
  local all = call('HINCRBY', key, 'replayed', replayed) + call('HINCRBY', key, 'skipped', tonumber(ARGV[5]) - replayed)
  if ARGV[4] ~= '1' then return 1 end
  call('HSET', key, 'status', 'done', 'finished_at', now, 'total', all)
  notify(now, 'replay.done', 's', sub, 'r', id)
end
call('HDEL', key, 'cursor')
call('SREM', base .. ':replaying', id)
call('PEXPIREAT', key, tonumber(now) + retention)
return 1
`,

  /** Adds an entry to the audit trail that belongs to no other change. ARGV: now, retention, audit entry. */
  appendAudit: `${LIB}${AUDIT}
audit(tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3])
`,

  /** Adds to counters. ARGV: key, life in ms, field, number, … */
  addCounts: `
for i = 3, #ARGV, 2 do redis.call('HINCRBY', ARGV[1], ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', ARGV[1], ARGV[2])
`,

  /** Adds to the counters of addresses in one hour, and ranks them. ARGV: hour, life in ms, (subscription, succeeded, failed, milliseconds)… */
  addAddressCounts: `
local call, base, hour, life = redis.call, KEYS[1], ARGV[1], ARGV[2]
local failing, slow = base .. ':stats:failing:' .. hour, base .. ':stats:slow:' .. hour
for i = 3, #ARGV, 4 do
  local sub, key = ARGV[i], base .. ':stats:address:' .. ARGV[i] .. ':' .. hour
  local attempts = call('HINCRBY', key, 's', ARGV[i + 1]) + call('HINCRBY', key, 'f', ARGV[i + 2])
  call('ZADD', slow, call('HINCRBY', key, 'm', ARGV[i + 3]) / attempts, sub)
  call('PEXPIRE', key, life)
  if ARGV[i + 2] ~= '0' then call('ZINCRBY', failing, ARGV[i + 2], sub) end
end
call('PEXPIRE', failing, life)
call('PEXPIRE', slow, life)
`,

  /** Notes that a worker is alive and forgets those not heard of for long. ARGV: worker, what it says of itself, now, forget those seen before. */
  seeWorker: `
local workers, seen = KEYS[1] .. ':workers', KEYS[1] .. ':workers_seen'
redis.call('HSET', workers, ARGV[1], ARGV[2])
redis.call('ZADD', seen, ARGV[3], ARGV[1])
for _, id in ipairs(redis.call('ZRANGEBYSCORE', seen, '-inf', ARGV[4])) do
  redis.call('HDEL', workers, id)
  redis.call('ZREM', seen, id)
end
`,

  /** Removes from an index up to n entries older than a time whose delivery has expired. Answers {looked at, removed}. ARGV: index key, before, offset, n. */
  trimIndex: `
local ids = redis.call('ZRANGEBYSCORE', ARGV[1], '-inf', ARGV[2], 'LIMIT', ARGV[3], ARGV[4])
local removed = 0
for _, id in ipairs(ids) do
  if redis.call('EXISTS', KEYS[1] .. ':delivery:' .. id) == 0 then
    removed = removed + redis.call('ZREM', ARGV[1], id)
  end
end
return {#ids, removed}
`,

  /** Gives deliveries whose job is lost a new generation, if they still are where they were. Answers (delivery, generation, event, subscription, next attempt)… ARGV: (delivery, generation)… */
  renew: `${LIB}
local out = {}
for i = 1, #ARGV, 2 do
  local key = base .. ':delivery:' .. ARGV[i]
  local d = redis.call('HMGET', key, 'st', 'g', 'e', 's', 'x')
  if (d[1] == PENDING or d[1] == WAITING) and (d[2] or '0') == ARGV[i + 1] then
    local g = redis.call('HINCRBY', key, 'g', 1)
    for _, v in ipairs({ARGV[i], tostring(g), d[3], d[4], d[5] or ''}) do out[#out + 1] = v end
  end
end
return out
`,

  /** Takes or keeps a lease. Answers 1 to its holder. ARGV: key, holder, life in ms. */
  lease: `
local holder = redis.call('GET', ARGV[1])
if holder and holder ~= ARGV[2] then return 0 end
redis.call('SET', ARGV[1], ARGV[2], 'PX', ARGV[3])
return 1
`,
} as const satisfies Record<string, string>;

export type ScriptName = keyof typeof scripts;
