-- Takes the next jobs, up to `limit` from each partition in `takes`. From a partition in `marked`, takes jobs only if
-- its marker says that jobs were added, and removes the marker. It is one script to ask many partitions with one call,
-- and so that a job is taken and locked at once. `home` is a partition's key prefix. Returns {for each partition, those
-- of `takes` first, a list of what readNext returns, or the text of an error; addresses whose deliveries were parked}.
-- If fewer jobs wait, the last entry of a list says when the next is due. An event that several jobs share is returned
-- once.
--@include next-job
--@include error-text

local asked, markers = {}, {}
for home, token, limit in takes do
  asked[#asked + 1] = {prefix = home, token = token, limit = tonumber(limit)}
end
for home, token, limit in marked do
  prefix = home
  local marker = KEY_QUEUE .. 'marker'
  markers[#markers + 1] = marker
  asked[#asked + 1] = {prefix = home, token = token, limit = tonumber(limit), marker = marker}
end

setRoom(perAddress, busy, dueBeforeMs)
local known = {[knownEvent] = true}
local function takeFrom(one)
  local taken = {}
  for i = 1, one.limit do
    taken[i] = readNext(one.token, lockMs, nowMs, known, spansPartitions)
    if not taken[i] then break end
    if taken[i][1] == '' then return taken end
  end
  wakeNext()
  return taken
end

local markersLeft = #markers > 0 and call('EXISTS', unpack(markers)) or 0
local reply, ready = {}, {}
for i, one in ipairs(asked) do
  local isReady = not one.marker
  if one.marker and markersLeft > 0 and call('DEL', one.marker) == 1 then
    isReady = true
    markersLeft = markersLeft - 1
  end
  one.place, reply[i] = i, {}
  if isReady then ready[#ready + 1] = one end
end
if #ready > 1 then lookForRetries(ready) end

-- Each partition has its share of what a script may park. An error in one partition does not affect the others.
local mayParkEach = math.max(1, math.floor(MAX_PARKED_AT_ONCE / #ready))
for _, one in ipairs(ready) do
  prefix, mayPark = one.prefix, mayParkEach
  local isDone, taken = pcall(takeFrom, one)
  if not isDone then
    forgetParking()
    taken = errorText(taken)
  end
  reply[one.place] = taken
end
return {reply, parkedAddresses}
