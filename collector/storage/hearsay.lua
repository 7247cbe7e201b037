#!lua name=hearsay
-- The atomic steps of the collector's store.  Each checks everything that could refuse it before its
-- first write, because a script is not rolled back.  All keys of one call share one hash tag.
-- Loaded again with REPLACE by every version: a step whose meaning changes gets another name.

local VERSION = 4
local GROUP = 'workers'
-- Of the increments or ids in one command: how many (Lua can unpack some 8,000 values, an increment
-- is four); and of increments, how far apart (in counters of 8 bytes: what is read to check them).
local CHUNK, SPAN = 1000, 8192
-- A counter is refused unless its top byte, unsigned, is below or above these: then it is within
-- 2^62 of zero, and so is what is added.  One byte keeps counts out of Lua's inexact numbers.
local ABOVE, BELOW = 63, 192
-- Seconds: of a day; how far two clocks may be apart and still agree; between two moves of the floor
-- (below a day, or it would lag behind a little more every day).
local DAY, MARGIN, STEP = 86400, 3600, 72000
-- A tally of which few cells are filled is a hash of index to count, and 'last' to the highest index
-- that was named, be it with a delta of 0: the caller names the last cell to tell how wide it is.  A
-- field takes up to 64 bytes, a cell of a string 8; so it becomes a string, for good, once a share of
-- its cells is filled, or so many that they could not be moved quickly; a narrow one is never a hash.
local SHARE, FILLED, WIDE = 8, 16384, 1024
-- A count of uploads or reports is refused from here on; compared only, so doubles will do.
local MOST_COUNTED = 2 ^ 62

-- Return an entry of a stream as { id, fields }, or nil.
local function entry_of(stream, id) return redis.call('XRANGE', stream, id, id, 'COUNT', 1)[1] end

-- Return a field of a stream entry, '' if it has none.
local function field(fields, name)
  for i = 1, #fields, 2 do
    if fields[i] == name then return fields[i + 1] end
  end
  return ''
end

-- Return whether the counts of a shard can be added to: before the first write, as ever.
local function countable(counters)
  local values = redis.call('HVALS', counters)
  for _, value in ipairs(values) do
    local number = tonumber(value)
    if not number or number >= MOST_COUNTED then return false end
  end
  return true
end

local function uncountable() return redis.error_reply('HEARSAYCOUNTERS counts cannot be added to') end

-- Add an upload of so many reports, both text, to a state: accepted, quarantined, dropped.
local function count(counters, state, sign, reports)
  redis.call('HINCRBY', counters, state .. '.uploads', sign .. '1')
  if reports ~= '' and reports ~= '0' then
    redis.call('HINCRBY', counters, state .. '.reports', sign .. reports)
  end
end

-- The marks of the shard of *counters*: of each metric, the epoch before which all is pruned.
local function marks_of(counters) return (string.gsub(counters, 'counters$', 'pruned')) end

-- Return whether the epoch of an index set is pruned: what comes for it later is counted, not kept.
local function is_pruned(marks, index)
  local metric, epoch = string.match(index, ':cells:(%x+):(%-?%d+)$')
  local mark = metric and redis.call('HGET', marks, metric)
  return mark and tonumber(epoch) < tonumber(mark)
end

-- Refuse whatever would be kept by a store that is not the one with which the caller began.
local function replaced()
  return redis.error_reply('HEARSAYREPLACED the shard is not of the generation that was named')
end

-- keys: seen set, stream, counters.  args: upload id, entry, number of reports, Unix time from which
-- ids of that day may be forgotten, 1 if a repeat must be confirmed by replicas.
-- forgotten: false, or the last epoch day whose ids are deleted; day: that of the upload, likewise.
local function queue(keys, args, day, forgotten)
  if redis.call('SISMEMBER', keys[1], args[1]) == 1 then
    -- WAIT confirms what its own connection wrote, and all before it: so the repeat must write.
    if args[5] == '1' then redis.call('HINCRBY', keys[3], 'accepted.uploads', 0) end
    return 0
  end
  -- Whatever any clock says: where ids were deleted, a repeat cannot be told from a first sight.
  local is_gone = forgotten and tonumber(day) <= tonumber(forgotten)
  if is_gone or tonumber(args[4]) <= tonumber(redis.call('TIME')[1]) then
    return redis.error_reply('HEARSAYFORGOTTEN the day on which the id is forgotten is over')
  end
  if not countable(keys[3]) then return uncountable() end
  -- An explicit id: the default one would keep the time of arrival at rest.
  redis.call('XADD', keys[2], '1-*', 'n', args[3], 'e', args[2])
  -- No time to live: ids must outlive a clock that is wrong.  Workers delete them, see forget_ids.
  redis.call('SADD', keys[1], args[1])
  count(keys[3], 'accepted', '', args[3])
  return 1
end

-- As release 3 called it, for web processes that are not yet replaced.
local function append(keys, args) return queue(keys, args, false, false) end

-- keys and args of append; at their ends the state of the shard, then the generation and the day of
-- sealing.
local function append_checked(keys, args)
  local state = redis.call('HMGET', keys[4], 'generation', 'forgotten')
  if state[1] ~= args[6] then return replaced() end
  return queue(keys, args, args[7], state[2])
end

-- keys: state of the shard.  args: Unix time of a worker's own clock.  Moves the floor, the last day
-- that two clocks have confirmed, by one day at most.  Returns the floor, -1 if there is none.
local function confirm_day(keys, args)
  local now, own = tonumber(redis.call('TIME')[1]), tonumber(args[1])
  local state = redis.call('HMGET', keys[1], 'generation', 'floor', 'moved')
  if not state[1] then return replaced() end
  local today, floor = math.floor(math.min(now, own) / DAY), tonumber(state[2] or '')
  local moved = tonumber(state[3] or '')
  if math.abs(now - own) > MARGIN then return floor or -1 end
  if not floor then
    floor = today
  elseif moved <= now and (today <= floor or now - moved < STEP) then
    return floor
  elseif moved <= now then
    floor = floor + 1
  end
  -- A time of moving that is to come was noted by a clock that was ahead: count from now.
  redis.call('HSET', keys[1], 'floor', floor, 'moved', now)
  return floor
end

-- keys: state of the shard, seen set.  args: the set's day, days after it from which no upload of it
-- is taken.  Deletes the set once the floor has come so far; returns whether there was one.
local function forget_ids(keys, args)
  local day, state = tonumber(args[1]), redis.call('HMGET', keys[1], 'floor', 'forgotten')
  if not state[1] or tonumber(state[1]) < day + tonumber(args[2]) then return 0 end
  if redis.call('UNLINK', keys[2]) == 0 then return 0 end
  if not state[2] or tonumber(state[2]) < day then redis.call('HSET', keys[1], 'forgotten', day) end
  return 1
end

-- keys: a hash.  args: fields and values.  Needs no room: a full store is prepared, too.
local function establish(keys, args) return redis.call('HSET', keys[1], unpack(args)) end

-- keys: stream.  args: consumer, most entries, bytes after which to stop, milliseconds after which
-- an entry counts as left, cursor, deliveries from which an entry ends the claim of left ones.
-- Returns the next cursor, ids that have vanished, and entries as { id, entry, deliveries }.
local function claim(keys, args)
  local most, room, alone = tonumber(args[2]), tonumber(args[3]), tonumber(args[6])
  local cursor, claimed, vanished, known = args[5], {}, {}, {}
  local function take(entry, deliveries)
    local bytes = field(entry[2], 'e')
    known[entry[1]] = true
    room = room - #bytes
    claimed[#claimed + 1] = { entry[1], bytes, deliveries }
  end
  for _ = 1, most do
    local found = redis.call('XAUTOCLAIM', keys[1], GROUP, args[1], args[4], cursor, 'COUNT', 1)
    cursor = found[1]
    for _, id in ipairs(found[3]) do vanished[#vanished + 1] = id end
    local entry, deliveries = found[2][1], 0
    if entry then
      deliveries = redis.call('XPENDING', keys[1], GROUP, entry[1], entry[1], 1)[1][4]
      take(entry, deliveries)
    end
    if cursor == '0-0' or room <= 0 or deliveries >= alone then break end
  end
  -- One by one: a count alone would let large entries fill the worker's memory.
  while #claimed < most and room > 0 do
    local reply = redis.call(
      'XREADGROUP', 'GROUP', GROUP, args[1], 'COUNT', 1, 'STREAMS', keys[1], '>')
    if not reply then break end
    -- A group set back to its beginning delivers as new what was just claimed as left.
    local entry = reply[1][2][1]
    if not known[entry[1]] then take(entry, 1) end
  end
  return { cursor, vanished, claimed }
end

-- Turn 'index delta index delta ...' into commands that add; deltas stay text.
local function additions(key, text)
  local chunks, chunk, size = {}, nil, 0
  for index, delta in string.gmatch(text, '(%d+) (%-?%d+)') do
    if delta ~= '0' then
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

-- Return the increments to a tally as { index, delta }, and the highest index among them.
local function parsed(text)
  local found, last = {}, 0
  for index, delta in string.gmatch(text, '(%d+) (%-?%d+)') do
    if delta ~= '0' then found[#found + 1] = { index, delta } end
    last = math.max(last, tonumber(index))
  end
  return found, last
end

-- Return how many cells a sparse tally has with *increments*; nil if a counter could overflow.
local function filled_with(key, increments)
  local filled = redis.call('HLEN', key) - 1
  for first = 1, #increments, CHUNK do
    local indexes = {}
    for i = first, math.min(first + CHUNK - 1, #increments) do
      indexes[#indexes + 1] = increments[i][1]
    end
    for _, value in ipairs(redis.call('HMGET', key, unpack(indexes))) do
      if not value then
        filled = filled + 1
      elseif math.abs(tonumber(value)) >= MOST_COUNTED then
        return nil
      end
    end
  end
  return filled
end

-- Return the fields of a sparse tally, and commands that add its counts to an empty string.
local function unpacked(key)
  local flat, cells, fields, texts = redis.call('HGETALL', key), {}, {}, {}
  for i = 1, #flat, 2 do
    fields[#fields + 1] = flat[i]
    if flat[i] ~= 'last' then cells[#cells + 1] = { tonumber(flat[i]), flat[i + 1] } end
  end
  table.sort(cells, function(one, other) return one[1] < other[1] end)
  for i, cell in ipairs(cells) do texts[i] = cell[1] .. ' ' .. cell[2] end
  return fields, additions(key, table.concat(texts, ' '))
end

-- Return what adds increments to a tally, all of it checked; nil if a counter could overflow.
-- may_be_sparse: the release that calls reads sparse tallies.
local function addition(key, text, may_be_sparse)
  local kind = redis.call('TYPE', key)
  local form = type(kind) == 'table' and kind.ok or kind
  local made = { key = key, fields = {}, chunks = {} }
  if form == 'hash' or (form == 'none' and may_be_sparse) then
    local increments, last = parsed(text)
    local filled, before = #increments, 0
    if form == 'hash' then
      filled, before = filled_with(key, increments), tonumber(redis.call('HGET', key, 'last'))
    end
    if not filled then return nil end
    made.last = math.max(last, before)
    if may_be_sparse and made.last >= WIDE and filled <= FILLED and filled * SHARE <= made.last then
      made.sparse = increments
      return made
    end
    if form == 'hash' then made.fields, made.chunks = unpacked(key) end
  end
  for _, chunk in ipairs(additions(key, text)) do
    if form ~= 'hash' and not fits(key, chunk) then return nil end
    made.chunks[#made.chunks + 1] = chunk
  end
  return made
end

-- Carry out what addition has returned.
local function add(made)
  if made.sparse then
    for _, one in ipairs(made.sparse) do redis.call('HINCRBY', made.key, one[1], one[2]) end
    redis.call('HSET', made.key, 'last', made.last)
    return
  end
  for first = 1, #made.fields, CHUNK do
    local final = math.min(first + CHUNK - 1, #made.fields)
    redis.call('HDEL', made.key, unpack(made.fields, first, final))
  end
  for _, chunk in ipairs(made.chunks) do redis.call(unpack(chunk.command)) end
end

local function overflown()
  return redis.error_reply('HEARSAYOVERFLOW a counter is near the end of its range')
end

-- Keep entries in the archive's stream, with the day of their fold and no id of theirs.
local function keep(archive, classes, entries)
  local day = math.floor(tonumber(redis.call('TIME')[1]) / 86400)
  for first = 1, #entries, CHUNK do
    local command = { 'XADD', archive, '1-*', 'd', day, 'c', classes }
    for i = first, math.min(first + CHUNK - 1, #entries) do
      command[#command + 1], command[#command + 2] = 'e', entries[i]
    end
    redis.call(unpack(command))
  end
end

-- keys: stream, counters, then tally and index set of each cell.
-- args: number of ids, Unix time from which the cells are of another class (0 for never), reports,
-- of these late ones, ids, then member of the index set and increments of each cell.
-- archive, classes: nil, or the stream that keeps what is folded, and a text to keep with it.
-- may_be_sparse: see addition.
-- Returns the ids that are gone: then nothing was written.
local function fold(keys, args, archive, classes, may_be_sparse)
  local size, ending = tonumber(args[1]), tonumber(args[2])
  local ids, entries, missing, cells = {}, {}, {}, {}
  for i = 1, size do
    ids[i] = args[i + 4]
    local found = entry_of(keys[1], ids[i])
    if not found then
      missing[#missing + 1] = ids[i]
    elseif archive then
      entries[i] = field(found[2], 'e')
    end
  end
  if #missing > 0 then return missing end
  if archive then redis.call('XLEN', archive) end
  -- Only here is the day of the fold certain: what is published must not change afterwards.
  if ending > 0 and tonumber(redis.call('TIME')[1]) >= ending then
    return redis.error_reply('HEARSAYCLASS a class of lateness has ended')
  end
  if not countable(keys[2]) then return uncountable() end
  local marks, too_late = marks_of(keys[2]), {}
  for i = 1, (#keys - 2) / 2 do
    local member, text = args[size + 2 * i + 3], args[size + 2 * i + 4]
    local cell = { tally = keys[2 * i + 1], index = keys[2 * i + 2], member = member }
    if is_pruned(marks, cell.index) then
      too_late[#too_late + 1] = string.match(text, '^0 (%-?%d+)') or '0'
    else
      cell.known = redis.call('SISMEMBER', cell.index, member) == 1
      cell.added = addition(cell.tally, text, may_be_sparse)
      if not cell.added then return overflown() end
      cells[#cells + 1] = cell
    end
  end
  -- The deletion is the token: whoever finds the entries deletes and counts them in one step.
  for first = 1, size, CHUNK do
    redis.call('XDEL', keys[1], unpack(ids, first, math.min(first + CHUNK - 1, size)))
  end
  if archive then keep(archive, classes, entries) end
  for _, cell in ipairs(cells) do
    add(cell.added)
    if not cell.known then redis.call('SADD', cell.index, cell.member) end
  end
  for first = 1, size, CHUNK do
    redis.call('XACK', keys[1], GROUP, unpack(ids, first, math.min(first + CHUNK - 1, size)))
  end
  redis.call('HINCRBY', keys[2], 'folded.uploads', args[1])
  redis.call('HINCRBY', keys[2], 'folded.reports', args[3])
  if args[4] ~= '0' then redis.call('HINCRBY', keys[2], 'late.reports', args[4]) end
  for _, reports in ipairs(too_late) do redis.call('HINCRBY', keys[2], 'pruned.reports', reports) end
  if archive then
    redis.call('HINCRBY', keys[2], 'archived.uploads', args[1])
    redis.call('HINCRBY', keys[2], 'archived.reports', args[3])
  end
  return {}
end

-- keys and args of fold, and at their ends the archive's stream and the classes of the cells.
local function fold_archived(keys, args, may_be_sparse)
  local archive, classes = table.remove(keys), table.remove(args)
  return fold(keys, args, archive, classes, may_be_sparse)
end

-- Those of a release that reads no hash: workers of it may run until they are replaced.
local function fold_dense(keys, args) return fold(keys, args) end
local function fold_dense_archived(keys, args) return fold_archived(keys, args, false) end
local function fold_sparse(keys, args) return fold(keys, args, nil, nil, true) end
local function fold_sparse_archived(keys, args) return fold_archived(keys, args, true) end

-- keys: what was restored, counters, tally, index set.  args: a name for the cell in its archive,
-- member of the index set, increments, reports, of these late ones.  The name is the token.
-- Returns 1, 0 for a cell that was restored before, -1 for one of a pruned epoch.
local function restore(keys, args)
  if redis.call('SISMEMBER', keys[1], args[1]) == 1 then return 0 end
  if is_pruned(marks_of(keys[2]), keys[4]) then return -1 end
  if not countable(keys[2]) then return uncountable() end
  local known = redis.call('SISMEMBER', keys[4], args[2]) == 1
  local added = addition(keys[3], args[3], true)
  if not added then return overflown() end
  redis.call('SADD', keys[1], args[1])
  add(added)
  if not known then redis.call('SADD', keys[4], args[2]) end
  redis.call('HINCRBY', keys[2], 'accepted.reports', args[4])
  redis.call('HINCRBY', keys[2], 'folded.reports', args[4])
  if args[5] ~= '0' then redis.call('HINCRBY', keys[2], 'late.reports', args[5]) end
  return 1
end

-- keys: marks.  args: metric, epoch.  Says that the epochs of a metric before this one are pruned;
-- a mark never moves back.
local function mark(keys, args)
  local known = redis.call('HGET', keys[1], args[1])
  if known and tonumber(known) >= tonumber(args[2]) then return 0 end
  redis.call('HSET', keys[1], args[1], args[2])
  return 1
end

-- Return a counter of up to eight bytes as two texts that add up to it: Lua's numbers are inexact.
local function halves(counter)
  local high, low = 0, 0
  for place = 1, #counter do
    local byte = string.byte(counter, place)
    if place <= 4 then high = high * 256 + byte else low = low * 256 + byte end
  end
  return { string.format('%.0f', high * 2 ^ 32), string.format('%.0f', low) }
end

-- keys: counters, index set of a metric and epoch, tallies of it.  args: member of each tally.
-- Deletes them, and counts their reports.  Returns how many tallies there were, -1 if not marked.
local function prune(keys, args)
  if not is_pruned(marks_of(keys[1]), keys[2]) then return -1 end
  if not countable(keys[1]) then return uncountable() end
  local counts, total, found = {}, 0, 0
  for i = 1, #args do
    local kind = redis.call('TYPE', keys[i + 2])
    local form = type(kind) == 'table' and kind.ok or kind
    if form == 'hash' then
      counts[i] = { redis.call('HGET', keys[i + 2], '0') or '0' }
    else
      counts[i] = halves(redis.call('GETRANGE', keys[i + 2], 0, 7))
    end
    if form ~= 'none' then found = found + 1 end
    for _, reports in ipairs(counts[i]) do total = total + tonumber(reports) end
  end
  if total >= MOST_COUNTED then return uncountable() end
  for i = 1, #args do
    redis.call('UNLINK', keys[i + 2])
    redis.call('SREM', keys[2], args[i])
    for _, reports in ipairs(counts[i]) do
      redis.call('HINCRBY', keys[1], 'pruned.reports', reports)
    end
  end
  return found
end

-- keys: counters, then index set and tally of each tally that is gone.  args: the reports folded,
-- pruned and lost as they were found, those that are missing, then the members of the index sets.
-- Counts the missing ones as lost, unless something has moved meanwhile.
local function lose(keys, args)
  if not countable(keys[1]) then return uncountable() end
  for i, state in ipairs({ 'folded', 'pruned', 'lost' }) do
    if (redis.call('HGET', keys[1], state .. '.reports') or '0') ~= args[i] then return 0 end
  end
  for i = 3, #keys, 2 do
    if redis.call('EXISTS', keys[i]) == 1 then return 0 end
  end
  for i = 2, #keys, 2 do redis.call('SREM', keys[i], args[i / 2 + 4]) end
  redis.call('HINCRBY', keys[1], 'lost.reports', args[4])
  return 1
end

-- keys: stream, quarantine stream, counters.  args: entry id, reason.
local function quarantine(keys, args)
  local found = entry_of(keys[1], args[1])
  if not found then return 0 end
  if not countable(keys[3]) then return uncountable() end
  redis.call('XLEN', keys[2])
  redis.call('XADD', keys[2], '1-*', 'reason', args[2], unpack(found[2]))
  redis.call('XDEL', keys[1], args[1])
  redis.call('XACK', keys[1], GROUP, args[1])
  count(keys[3], 'quarantined', '', field(found[2], 'n'))
  return 1
end

-- keys: quarantine stream, stream, counters.  args: id in the quarantine.  Queues the entry again.
local function requeue(keys, args)
  local found = entry_of(keys[1], args[1])
  if not found then return 0 end
  if not countable(keys[3]) then return uncountable() end
  local reports = field(found[2], 'n')
  redis.call('XLEN', keys[2])
  redis.call('XADD', keys[2], '1-*', 'n', reports, 'e', field(found[2], 'e'))
  redis.call('XDEL', keys[1], args[1])
  count(keys[3], 'quarantined', '-', reports)
  return 1
end

-- keys: quarantine stream, counters.  args: id in the quarantine.  Deletes the entry, counted.
local function drop(keys, args)
  local found = entry_of(keys[1], args[1])
  if not found then return 0 end
  if not countable(keys[2]) then return uncountable() end
  local reports = field(found[2], 'n')
  redis.call('XDEL', keys[1], args[1])
  count(keys[2], 'quarantined', '-', reports)
  count(keys[2], 'dropped', '', reports)
  return 1
end

-- One that still holds entries must stay, or they are never claimed.
local function forget(stream, consumer)
  if #redis.call('XPENDING', stream, GROUP, '-', '+', 1, consumer) > 0 then return 0 end
  redis.call('XGROUP', 'DELCONSUMER', stream, GROUP, consumer)
  return 1
end

-- keys: stream.  args: consumer.
local function retire(keys, args) return forget(keys[1], args[1]) end

-- keys: stream.  args: milliseconds.  Forgets the consumers that have asked for nothing that long.
local function sweep(keys, args)
  local forgotten = 0
  for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', keys[1], GROUP)) do
    if tonumber(field(consumer, 'idle')) >= tonumber(args[1]) then
      forgotten = forgotten + forget(keys[1], field(consumer, 'name'))
    end
  end
  return forgotten
end

-- keys: credentials.  args: digest, the record as the caller has read it, the new one.  Replaces that
-- record and no other, so that nobody undoes what somebody else has written since; it needs no room.
local function replace_checked(keys, args)
  if redis.call('HGET', keys[1], args[1]) ~= args[2] then return 0 end
  redis.call('HSET', keys[1], args[1], args[3])
  return 1
end

-- keys: stream, quarantine stream, counters.  Lengths and counts of one moment.
local function counted(keys)
  local lengths = { redis.call('XLEN', keys[1]), redis.call('XLEN', keys[2]) }
  return { lengths[1], lengths[2], redis.call('HGETALL', keys[3]) }
end

-- keys: stream.  Refused, as an append would be, when memory is full or the log cannot be written.
local function ready(keys) return redis.call('XLEN', keys[1]) end

-- keys: stream, state of the shard.  args: generation.
local function ready_checked(keys, args)
  if redis.call('HGET', keys[2], 'generation') ~= args[1] then return replaced() end
  return ready(keys)
end

-- keys: stream, so that the shard's own server answers.  Its clock decides the class of lateness.
local function now() return tonumber(redis.call('TIME')[1]) end

-- Full memory must stop the intake, never the worker: folding is what gives memory back.
local function register(name, callback, ...)
  redis.register_function{ function_name = 'hearsay_' .. name, callback = callback, flags = { ... } }
end

register('version', function() return VERSION end, 'no-writes')
register('append_counted', append)
register('append_checked', append_checked)
register('ready', ready)
register('ready_checked', ready_checked)
register('confirm_day', confirm_day, 'allow-oom')
register('forget_ids', forget_ids, 'allow-oom')
register('establish', establish, 'allow-oom')
register('claim', claim, 'allow-oom')
register('fold_counted', fold_dense, 'allow-oom')
register('fold_archived', fold_dense_archived, 'allow-oom')
register('fold_sparse', fold_sparse, 'allow-oom')
register('fold_sparse_archived', fold_sparse_archived, 'allow-oom')
register('quarantine_counted', quarantine, 'allow-oom')
register('requeue', requeue, 'allow-oom')
register('drop', drop, 'allow-oom')
register('restore', restore)
register('mark', mark, 'allow-oom')
register('prune', prune, 'allow-oom')
register('lose', lose, 'allow-oom')
register('replace_checked', replace_checked, 'allow-oom')
register('retire', retire, 'allow-oom')
register('sweep', sweep, 'allow-oom')
register('counted', counted, 'no-writes')
register('now', now, 'no-writes')
