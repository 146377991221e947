-- Tells whether a delivery's status (field st) is final, and moves the delivery between the indexes by status.

local indexes = DELIVERY_INDEXES

local function isFinished(st) return st == SUCCEEDED or st == FAILED end

local function move(id, created, from, to)
  if from == to then return end
  call('ZADD', prefix .. indexes[to], created, id)
  call('ZREM', prefix .. indexes[from], id)
end
