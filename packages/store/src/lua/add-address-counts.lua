-- Adds what a worker has counted in 2 s to the counters of addresses, ranks the addresses, and keeps their health
-- (health.ts of packages/core). It is one script because several workers report on the same address, and a failing
-- period must begin once and end once, each with one notice. Returns the first address that could not be counted as a
-- whole, with the error; empty if there is none.
-- Arguments of an address: `key` has its counters of this hour; the run lengths and times are those of `AttemptRun` of
-- packages/core; `errors` is a list in JSON (see addErrors); `long` counts attempts by duration, as "bucket:count …".
--
-- A failing period begins after HEALTH_RUN failures in a row. It also begins if at least HEALTH_RUN attempts were made
-- in the last HEALTH_MINUTES and fewer than half of them succeeded.
-- It ends after HEALTH_RUN successes in a row. It also ends if the last attempt and at least half of the attempts of
-- the last HEALTH_MINUTES since its beginning succeeded. The success rate then starts anew from the next minute on.
-- Counts for an earlier url, or for a deleted subscription, do not change the health. A deleted subscription is not
-- ranked: nobody would see it, and it would take the place of another one.
-- Consoles are told of a change that may move an address in their lists: its first attempt, the beginning and the end
-- of a failing period, and each further digit of the number of its failed attempts.
-- Fields of the health:
--   w      attempts, as "minute:succeeded:failed …"
--   q, fq  failures in a row, and when the first of them was
--   u, ls  successes in a row, and when the last success was
--   e      errors by label
--   m      the mean duration of the attempts that were reported last
--   since  when the failing period began
--   nat    when the newest notice of a failing period was made
--   told   whether the present failing period had its notice
--   ok     the minute in which the last failing period ended
--@include announce
--@include error-of-key
--@include error-total
--@include notify

-- Adds new counts to a window (field w). Returns the window, and its attempts and successes from `sinceMinute` on.
local function count(window, minute, succeeded, failed, sinceMinute)
  local counted, attempts, good = '', 0, 0
  local function add(m, s, f)
    counted = counted .. string.format('%d:%d:%d ', m, s, f)
    if m >= sinceMinute then attempts, good = attempts + s + f, good + s end
  end
  for m, s, f in string.gmatch(window, '(%d+):(%d+):(%d+)') do
    m, s, f = tonumber(m), tonumber(s), tonumber(f)
    if m == minute then
      succeeded, failed = succeeded + s, failed + f
    elseif m > minute - HEALTH_MINUTES and m <= minute + 1 then
      -- The clock of another worker may be a minute ahead.
      add(m, s, f)
    end
  end
  add(minute, succeeded, failed)
  return counted, attempts, good
end

-- Adds `new`, a JSON list of [label, count, since, delivery, attempt], to the stored errors. Each label beyond
-- MAX_ERROR_LABELS replaces the least frequent one.
local function addErrors(errors, new)
  for _, error in ipairs(cjson.decode(new)) do
    local found, least
    for i, old in ipairs(errors) do
      if old[1] == error[1] then found = i end
      if not least or old[2] < errors[least][2] then least = i end
    end
    if found then
      error[2], error[3] = error[2] + errors[found][2], math.min(error[3], errors[found][3])
      errors[found] = error
    else
      errors[#errors < MAX_ERROR_LABELS and #errors + 1 or least] = error
    end
  end
end

local function mostFrequent(errors)
  local most
  for _, error in ipairs(errors and cjson.decode(errors) or {}) do
    if not most or error[2] > most[2] then most = error end
  end
  return most and most[1] or ''
end

local function digits(number) return #string.format('%d', number) end

-- 0 if the number is missing.
local function or0(value) return tonumber(value) or 0 end

-- A stored time as a number. 0 if it is missing, or more than a minute ahead: the clock of its worker was wrong.
local function past(value) return or0(value) <= nowMs + 60000 and or0(value) or 0 end

local function keepHealth(sub, succeeded, failed, meanMs, failedInARow, succeededInARow, firstFailedAtMs, lastSucceededAtMs, errors)
  local key = KEY_HEALTH .. sub
  local oldWindow, oldFailureRun, oldFirst, oldSuccessRun, kept, oldSince, noticedAtMs, wasTold, okMinute, oldLastSuccess =
    unpack(call('HMGET', key, 'w', 'q', 'fq', 'u', 'e', 'since', 'nat', 'told', 'ok', 'ls'))
  -- These failures are not in a row: another worker has reported a success after the first of them.
  if or0(firstFailedAtMs) < past(oldLastSuccess) then failedInARow = 0 end
  local earlierRun = succeeded == 0 and or0(oldFailureRun) or 0
  local failureRun = earlierRun + failedInARow
  local first = failureRun == 0 and '' or earlierRun > 0 and oldFirst or firstFailedAtMs
  local successRun = failed > 0 and succeededInARow or or0(oldSuccessRun) + succeeded
  local since = or0(oldSince)
  local sinceMinute = since > 0 and math.floor(since / 60000) or or0(okMinute) + 1
  local window, attempts, good = count(oldWindow or '', minute, succeeded, failed, sinceMinute)
  call('HSET', key, 'w', window, 'q', failureRun, 'fq', first, 'u', successRun, 'm', math.floor(meanMs))
  if or0(lastSucceededAtMs) > past(oldLastSuccess) then call('HSET', key, 'ls', lastSucceededAtMs) end
  local hasMoreDigits = false
  if errors ~= '' then
    local all = kept and cjson.decode(kept) or {}
    local before = errorTotal(all)
    addErrors(all, errors)
    hasMoreDigits = digits(errorTotal(all)) ~= digits(before)
    kept = cjson.encode(all)
    call('HSET', key, 'e', kept)
  end
  -- Its earlier health may have been moved away by hand, while it was failing.
  if not oldWindow then call('ZREM', KEY_FAILING, sub) end
  local begins = since == 0 and (failureRun >= HEALTH_RUN or attempts >= HEALTH_RUN and 2 * good < attempts)
  local ends = since > 0 and (successRun >= HEALTH_RUN or failureRun == 0 and 2 * good >= attempts)
  if begins then
    since = or0(first ~= '' and first or nowMs)
    call('HSET', key, 'since', since)
    call('ZADD', KEY_FAILING, since, sub)
    call('PERSIST', key)
  end
  if since > 0 and not ends and not wasTold and nowMs - past(noticedAtMs) >= HEALTH_NOTICE_GAP_MS then
    call('HSET', key, 'told', 1, 'nat', nowMs)
    notify(nowMs, NOTICE_SUBSCRIPTION_FAILING, 's', sub, 'w', mostFrequent(kept), 'b', since)
  end
  if not oldWindow or begins or ends or since > 0 and hasMoreDigits then announce(sub) end
  if ends then
    call('ZREM', KEY_FAILING, sub)
    call('HDEL', key, 'since', 'told')
    call('HSET', key, 'ok', minute)
    if wasTold then notify(nowMs, NOTICE_SUBSCRIPTION_RECOVERED, 's', sub, 'b', since) end
  end
  if kept and (ends or since == 0 and successRun >= HEALTH_RUN) then call('HDEL', key, 'e') end
  if since == 0 or ends then call('PEXPIRE', key, healthLifeMs) end
end

-- An error about one key does not keep the other addresses from being counted.
local problem = ''
for key, subscriptionId, succeeded, failed, totalMs, url, failedInARow, succeededInARow, firstFailedAtMs, lastSucceededAtMs, errors, long in addresses do
  local isDone, why = pcall(function()
    local attempts = call('HINCRBY', key, 's', succeeded) + call('HINCRBY', key, 'f', failed)
    local meanMs = call('HINCRBY', key, 'm', totalMs) / attempts
    for bucket, number in string.gmatch(long, '(%d+):(%d+)') do call('HINCRBY', key, 'd' .. bucket, number) end
    call('PEXPIRE', key, lifeMs)
    local subscription = call('HMGET', KEY_SUBSCRIPTION .. subscriptionId, 'status', 'url')
    if subscription[1] and subscription[1] ~= DELETED then
      call('ZADD', slowKey, meanMs, subscriptionId)
      if failed ~= '0' then call('ZINCRBY', rankingKey, failed, subscriptionId) end
      if subscription[2] == url then
        keepHealth(subscriptionId, tonumber(succeeded), tonumber(failed), totalMs / (succeeded + failed),
          tonumber(failedInARow), tonumber(succeededInARow), firstFailedAtMs, lastSucceededAtMs, errors)
      end
    end
  end)
  if not isDone then
    local text = errorOfKey(why)
    if problem == '' then problem = subscriptionId .. ': ' .. text end
  end
end
call('PEXPIRE', rankingKey, lifeMs)
call('PEXPIRE', slowKey, lifeMs)
return problem
