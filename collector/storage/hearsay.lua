#!lua name=hearsay
-- The atomic steps of the collector's store.  Each checks everything that could refuse it before its
-- first write, because a script is not rolled back.  All keys of one call share one hash tag.
-- Loaded again with REPLACE by every version: a step whose meaning changes gets another name.

local VERSION = 1
local GROUP = 'workers'
-- Of the increments that one command adds: how many (Lua can unpack some 8,000 values, four each),
-- and how far apart (in counters of 8 bytes: what is read to check them).
local CHUNK, SPAN = 1000, 8192
-- A counter is refused unless its top byte, unsigned, is below or above these: then it is within
-- 2^62 of zero, and so is what is added.  One byte keeps counts out of Lua's inexact numbers.
local ABOVE, BELOW = 63, 192

local function exists(stream, id)
  return #redis.call('XRANGE', stream, id, id, 'COUNT', 1) > 0
end

-- keys: seen set, stream.  args: upload id, entry, Unix time at which the ids of that day are forgotten.
local function append(keys, args)
  if redis.call('SISMEMBER', keys[1], args[1]) == 1 then return 0 end
  -- An explicit id: the default one would keep the time of arrival at rest.
  redis.call('XADD', keys[2], '1-*', 'e', args[2])
  redis.call('SADD', keys[1], args[1])
  -- An absolute, whole day: a time to live would keep the moment of the first arrival at rest.
  redis.call('EXPIREAT', keys[1], args[3])
  return 1
end

-- Turn 'index delta index delta ...' into commands that add; deltas stay text.
local function additions(key, text)
  local chunks, chunk, size = {}, nil, 0
  for index, delta in string.gmatch(text, '(%d+) (%-?%d+)') do
    local at = tonumber(index)
    if not chunk or size == CHUNK or at < chunk.first or at >= chunk.first + SPAN then
      chunk = { first = at, last = at, indexes = {}, command = { 'BITFIELD', key } }
      chunks[#chunks + 1], size = chunk, 0
    end
    local command, free = chunk.command, 4 * size + 3
    command[free], command[free + 1] = 'INCRBY', 'i64'
    command[free + 2], command[free + 3] = '#' .. index, delta
    size = size + 1
    chunk.indexes[size] = at
    if at > chunk.last then chunk.last = at end
  end
  return chunks
end

local function fits(key, chunk)
  local counters = redis.call('GETRANGE', key, chunk.first * 8, chunk.last * 8)
  for _, index in ipairs(chunk.indexes) do
    local top = string.byte(counters, (index - chunk.first) * 8 + 1) or 0
    if top > ABOVE and top < BELOW then return false end
  end
  return true
end

-- keys: stream, then tally and index set of each cell.
-- args: number of ids, ids, then segment and increments of each cell.
-- Returns the ids that are gone: then nothing was written.
local function fold(keys, args)
  local ids, missing, cells = {}, {}, {}
  for i = 1, tonumber(args[1]) do
    ids[i] = args[i + 1]
    if not exists(keys[1], ids[i]) then missing[#missing + 1] = ids[i] end
  end
  if #missing > 0 then return missing end
  for i = 1, (#keys - 1) / 2 do
    local segment = args[#ids + 2 * i]
    local cell = { tally = keys[2 * i], index = keys[2 * i + 1], segment = segment }
    cell.known = redis.call('SISMEMBER', cell.index, segment) == 1
    cell.chunks = additions(cell.tally, args[#ids + 2 * i + 1])
    for _, chunk in ipairs(cell.chunks) do
      if not fits(cell.tally, chunk) then
        return redis.error_reply('HEARSAYOVERFLOW a counter is near the end of its range')
      end
    end
    cells[i] = cell
  end
  -- The deletion is the token: whoever finds the entries deletes and counts them in one step.
  for _, id in ipairs(ids) do redis.call('XDEL', keys[1], id) end
  for _, cell in ipairs(cells) do
    for _, chunk in ipairs(cell.chunks) do redis.call(unpack(chunk.command)) end
    if not cell.known then redis.call('SADD', cell.index, cell.segment) end
  end
  for _, id in ipairs(ids) do redis.call('XACK', keys[1], GROUP, id) end
  return {}
end

-- keys: stream, quarantine stream.  args: entry id, reason.
local function quarantine(keys, args)
  local found = redis.call('XRANGE', keys[1], args[1], args[1], 'COUNT', 1)
  if #found == 0 then return 0 end
  local command = { 'XADD', keys[2], '1-*', 'reason', args[2] }
  for _, part in ipairs(found[1][2]) do command[#command + 1] = part end
  redis.call(unpack(command))
  redis.call('XDEL', keys[1], args[1])
  redis.call('XACK', keys[1], GROUP, args[1])
  return 1
end

-- keys: stream.  args: consumer.  One that still holds entries must stay, or they are never claimed.
local function retire(keys, args)
  if #redis.call('XPENDING', keys[1], GROUP, '-', '+', 1, args[1]) > 0 then return 0 end
  redis.call('XGROUP', 'DELCONSUMER', keys[1], GROUP, args[1])
  return 1
end

-- keys: stream.  Refused, as an append would be, when memory is full or the log cannot be written.
local function ready(keys) return redis.call('XLEN', keys[1]) end

redis.register_function('hearsay_version', function() return VERSION end)
redis.register_function('hearsay_append', append)
redis.register_function('hearsay_ready', ready)
-- Full memory must stop the intake, never the worker: folding is what gives memory back.
redis.register_function{ function_name = 'hearsay_fold', callback = fold, flags = { 'allow-oom' } }
redis.register_function{
  function_name = 'hearsay_quarantine', callback = quarantine, flags = { 'allow-oom' }
}
redis.register_function{ function_name = 'hearsay_retire', callback = retire, flags = { 'allow-oom' } }
