#!lua name=hearsay
-- The atomic steps of the collector's store.  Each checks everything that could refuse it before its
-- first write, because a script is not rolled back.  All keys of one call share one hash tag.
-- Loaded again with REPLACE by every version: a step whose meaning changes gets another name.

local VERSION = 2
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
-- A tally with few filled cells is a hash of index to count, and 'last' to the highest index
-- that was named, be it with a delta of 0: the caller names the last cell to tell how wide it is.  A
-- field takes up to 64 bytes, a cell of a string 8; so it becomes a string, for good, once a share of
-- its cells is filled, or so many that they could not be moved quickly; a narrow one is never a hash.
local SHARE, FILLED, WIDE = 8, 16384, 1024
-- A count of uploads or reports is refused from here on; compared only, so doubles will do.
local MOST_COUNTED = 2 ^ 62
-- The ids of a day are sets of integers, 'buckets', which the server packs into 8 bytes a member as
-- long as a set has 512 at most.  Of a day: the fewest buckets it begins with, the most it may have;
-- ids a bucket for which it is planned, and from which there are four times as many buckets; how
-- many ids are counted as one.  A bucket of 384 on average has more than 512 once in 10^9.
local FEWEST, MOST_BUCKETS, PLANNED, FULL, SAMPLE = 16, 2 ^ 24, 288, 384, 16
-- Numbers in a range that folds for the archive are counted from; multiples of it are exact in Lua.
local RANGE = 2 ^ 33
-- A member of every bucket: one without it is not there.
local MARK = '0'

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
-- state: the only one that will be; all if nil.
local function countable(counters, state)
  local values
  if state then
    values = redis.call('HMGET', counters, state .. '.uploads', state .. '.reports')
  else
    values = redis.call('HVALS', counters)
  end
  for i = 1, #values do
    local number = tonumber(values[i] or 0)
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

-- Where an id is looked for: two numbers that only the shard's secret connects to it, so that no one
-- can aim at a bucket, or at the id of another device.  Returns the place, below 2^32, by which it
-- has a bucket, and the member of it, 64 bits as the text of a signed integer.
local function traces_of(secret, id)
  local digest = redis.sha1hex(secret .. id)
  local high, low = tonumber(digest:sub(9, 16), 16), tonumber(digest:sub(17, 24), 16)
  local sign = ''
  if high >= 2147483648 then
    sign, high, low = '-', high - 2147483648, low + 1
  end
  -- high * 2^32 + low in millions and the rest, for Lua's numbers are exact up to 2^53 only.
  low = high * 967296 + low
  local rest = low % 1000000
  local millions, member = high * 4294 + (low - rest) / 1000000, nil
  if millions > 0 then
    member = ('%s%d%06d'):format(sign, millions, rest)
  else
    member = sign .. rest
  end
  return tonumber(digest:sub(1, 8), 16), member
end

-- Return about how many ids there are of a day, 0 if unknown, as while its slot moves.
local function ids_of(seen)
  local counted = redis.pcall('HGET', seen, 'samples')
  return type(counted) == 'string' and tonumber(counted) * SAMPLE or 0
end

-- Return with how many buckets a day begins: by the same day of the last two weeks, the lower of
-- them, so that one flood makes no later day sparse; else by the two days before.
local function planned(seen)
  local prefix, day = string.match(seen, '^(.*:)(%-?%d+)$')
  local function before(days) return ids_of(prefix .. (day - days)) end
  local ids = math.min(before(7), before(14))
  if ids == 0 then ids = math.max(before(1), before(2)) end
  return math.min(math.max(math.ceil(ids / PLANNED), FEWEST), MOST_BUCKETS / 4)
end

-- Said of ids that this server does not have now, because their slot moves, or never again.
local function elsewhere() return redis.error_reply('TRYAGAIN ids of the day are not here') end

-- Return whether an error reads so, in part.
local function says(reply, text) return string.find(tostring(reply.err), text, 1, true) end

-- Look for an id in a day of buckets.  They are 'first' many, and with each level four times as many:
-- a level that is full stays as it is, and ids go to the next.  Each bucket that there is, is a field
-- of the day: without its mark it has not been moved here yet, or is lost, and so is what it knew.
-- day: of the seen hash, first, levels and samples.
-- Returns 1 for a repeat, or an error, or nil and what remember needs.  Writes nothing.
local function look(seen, day, secret, id)
  local place, member = traces_of(secret, id)
  local first, levels = tonumber(day[1] or planned(seen)), tonumber(day[2] or 0)
  local below, size, most = 0, first, levels > 0 and first * 4 ^ (levels - 1) or 0
  local is_full = tonumber(day[3] or 0) * SAMPLE >= FULL * most and most <= MOST_BUCKETS / 4
  local number, bucket, is_new
  for _ = 1, is_full and levels + 1 or levels do
    number = below + place % size
    bucket = seen .. ':' .. number
    local known = redis.pcall('SISMEMBER', bucket, member)
    if known == 1 then return 1 end
    if known ~= 0 then
      return says(known, 'non local') and elsewhere() or known
    end
    is_new = redis.call('SISMEMBER', bucket, MARK) == 0
    if is_new and redis.call('HGET', seen, number) then return elsewhere() end
    below = below + size
    size = 3 * below
  end
  return nil, {
    bucket = bucket,
    member = member,
    number = is_new and number,
    first = levels == 0 and first,
    is_full = is_full,
    is_sampled = place < 2 ^ 32 / SAMPLE,
  }
end

-- Remember an id where look did not find it.
local function remember(seen, spot)
  if spot.first then redis.call('HINCRBY', seen, 'first', spot.first) end
  if spot.is_full then redis.call('HINCRBY', seen, 'levels', 1) end
  if spot.is_sampled then redis.call('HINCRBY', seen, 'samples', 1) end
  if spot.number then
    redis.call('HINCRBY', seen, spot.number, 1)
    redis.call('SADD', spot.bucket, MARK)
  end
  redis.call('SADD', spot.bucket, spot.member)
end

local function forgotten_day()
  return redis.error_reply('HEARSAYFORGOTTEN the day on which the id is forgotten is over')
end

-- Append one upload, or refuse it before the first write.  state: of the shard, forgotten and secret.
-- Returns 1, 0 for a repeat, or an error.
local function append(keys, args, state, upload)
  local forgotten = state[2]
  local day = redis.call('HMGET', keys[1], 'first', 'levels', 'samples')
  local known, spot = look(keys[1], day, state[3], upload.id)
  -- Whatever any clock says: where ids were deleted, a repeat looks like a first try.
  local is_gone = forgotten and tonumber(args[4]) <= tonumber(forgotten)
  if type(known) == 'table' then return is_gone and forgotten_day() or known end
  if known == 1 then
    -- WAIT confirms what its own connection wrote, and all before it: so the repeat must write.
    if args[2] == '1' then redis.call('HINCRBY', keys[3], 'accepted.uploads', 0) end
    return 0
  end
  if is_gone or tonumber(args[1]) <= tonumber(redis.call('TIME')[1]) then return forgotten_day() end
  if not countable(keys[3], 'accepted') then return uncountable() end
  -- An explicit id: the default one would keep the time of arrival at rest.
  redis.call('XADD', keys[2], '1-*', 'n', upload.reports, 'e', upload.entry)
  -- No time to live: ids must outlive a clock that is wrong.  Workers delete them, see forget_ids.
  remember(keys[1], spot)
  count(keys[3], 'accepted', '', upload.reports)
  return 1
end

-- keys: the day's hash, stream, counters, state of the shard.  args: Unix time from which ids of that
-- day may be forgotten, 1 if a repeat must be confirmed by replicas, generation, day of sealing; of
-- each upload, its id, entry and number of reports.
-- Returns of each upload 1, or 0 for a repeat.  An error of one is returned in their place: those
-- before it are appended, and are repeats when they come again.
local function append_many(keys, args)
  local state = redis.call('HMGET', keys[4], 'generation', 'forgotten', 'secret')
  if state[1] ~= args[3] or not state[3] then return replaced() end
  local firsts = {}
  for i = 5, #args, 3 do
    local upload = { id = args[i], entry = args[i + 1], reports = args[i + 2] }
    local first = append(keys, args, state, upload)
    if type(first) == 'table' then return first end
    firsts[#firsts + 1] = first
  end
  return firsts
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

-- keys: state of the shard, hash of a day.  args: its day, days after it from which no upload of it
-- is taken.  Deletes the day once the floor has come so far, so many buckets a call.
-- Returns 0 if there is nothing to delete, 1 once all of it is, 2 if there is more.
local function forget_ids(keys, args)
  local day, state = tonumber(args[1]), redis.call('HMGET', keys[1], 'floor', 'forgotten')
  if not state[1] or tonumber(state[1]) < day + tonumber(args[2]) then return 0 end
  local days, names = redis.call('HMGET', keys[2], 'first', 'levels', 'gone'), {}
  if not days[1] then return 0 end
  if not state[2] or tonumber(state[2]) < day then redis.call('HSET', keys[1], 'forgotten', day) end
  -- From here on no upload of the day is taken, so it may be left in part until the next call.
  local gone, most = tonumber(days[3] or 0), tonumber(days[1]) * 4 ^ (tonumber(days[2]) - 1)
  local last = math.min(gone + CHUNK, most)
  for number = gone, last - 1 do
    names[#names + 1] = keys[2] .. ':' .. number
  end
  if type(redis.pcall('UNLINK', unpack(names))) == 'table' then return elsewhere() end
  if last < most then
    redis.call('HSET', keys[2], 'gone', last)
    return 2
  end
  redis.call('UNLINK', keys[2])
  return 1
end

-- keys: a hash.  args: fields and values.  Needs no room: a full store is prepared, too.
local function establish(keys, args) return redis.call('HSET', keys[1], unpack(args)) end

-- keys: state of the shard, archive's stream.  args: secret and number before the first fold, both
-- drawn, for a shard that has none; by how many ranges folds are to be numbered later, and 1 if they
-- are to be numbered anew.  In one step: a fold has the number that refold and archive expect.
local function begin_shard(keys, args)
  local state = redis.call('HMGET', keys[1], 'secret', 'folds', 'ranges')
  if not state[1] then redis.call('HSET', keys[1], 'secret', args[1]) end
  if state[2] and args[4] ~= '1' then return 0 end
  local first, ranges = state[2] or args[2], tonumber(state[3] or 0)
  local newest = redis.call('XREVRANGE', keys[2], '+', '-', 'COUNT', 1)[1]
  if state[2] then
    ranges = math.max(ranges + 1, tonumber(args[3]))
  elseif newest then  -- the state is lost, and the folds are not: they go on in their range
    local number = tonumber(string.match(newest[1], '-(%d+)'))
    redis.call('HSET', keys[1], 'folds', ('%.0f'):format(math.floor(number / RANGE) * RANGE))
    return 1
  else
    redis.call('UNLINK', keys[2])  -- it may have counted further
  end
  redis.call('HSET', keys[1], 'folds', first, 'ranges', ranges)
  local before = ('1-%.0f'):format(tonumber(first) + ranges * RANGE)
  redis.call('XADD', keys[2], before, '', '')
  redis.call('XDEL', keys[2], before)
  return 1
end

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
local function addition(key, text)
  local kind = redis.call('TYPE', key)
  local form = type(kind) == 'table' and kind.ok or kind
  local made = { key = key, fields = {}, chunks = {} }
  if form == 'hash' or form == 'none' then
    local increments, last = parsed(text)
    local filled, before = #increments, 0
    if form == 'hash' then
      filled, before = filled_with(key, increments), tonumber(redis.call('HGET', key, 'last'))
    end
    if not filled then return nil end
    made.last = math.max(last, before)
    if made.last >= WIDE and filled <= FILLED and filled * SHARE <= made.last then
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
  -- The last cells first: a string that is made at its full length has no room to spare.
  for i = #made.chunks, 1, -1 do redis.call(unpack(made.chunks[i].command)) end
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
-- Returns the ids that are gone: then nothing was written.
local function fold(keys, args, archive, classes)
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
      cell.added = addition(cell.tally, text)
      if not cell.added then return overflown() end
      cells[#cells + 1] = cell
    end
  end
  -- Deletion decides: the caller that finds the entries deletes and counts them in one step.
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
local function fold_archived(keys, args)
  local archive, classes = table.remove(keys), table.remove(args)
  return fold(keys, args, archive, classes)
end

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
-- Deletes them, and counts their reports.  Returns how many tallies there were.
local function delete(keys, args)
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

-- keys and args of delete.  Returns what it does, -1 if the epoch is not marked.
local function prune(keys, args)
  return is_pruned(marks_of(keys[1]), keys[2]) and delete(keys, args) or -1
end

-- keys and args of delete, and at the end of args the id of a key.  Returns -1 if a tally is not of it.
local function prune_key(keys, args)
  local fact = '"key:' .. table.remove(args) .. '"'
  for _, member in ipairs(args) do
    if not string.find(member, fact, 1, true) then return -1 end
  end
  return delete(keys, args)
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
-- record and no other, so that no other change since is lost; it needs no room.
local function replace(keys, args)
  if redis.call('HGET', keys[1], args[1]) ~= args[2] then return 0 end
  redis.call('HSET', keys[1], args[1], args[3])
  return 1
end

-- keys: stream, quarantine stream, counters.  Lengths and counts of one moment.
local function counted(keys)
  local lengths = { redis.call('XLEN', keys[1]), redis.call('XLEN', keys[2]) }
  return { lengths[1], lengths[2], redis.call('HGETALL', keys[3]) }
end

-- keys: stream, state of the shard.  args: generation.  Refused, as an append would be, when memory is
-- full or the log cannot be written.
local function ready(keys, args)
  local state = redis.call('HMGET', keys[2], 'generation', 'secret')
  if state[1] ~= args[1] or not state[2] then return replaced() end
  return redis.call('XLEN', keys[1])
end

-- keys: stream, so that the shard's own server answers.  Its clock decides the class of lateness.
local function now() return tonumber(redis.call('TIME')[1]) end

-- Full memory must stop the intake, never the worker: folding is what gives memory back.
local function register(name, callback, ...)
  redis.register_function{ function_name = 'hearsay_' .. name, callback = callback, flags = { ... } }
end

register('version', function() return VERSION end, 'no-writes')
register('append_many', append_many)
register('ready', ready)
register('confirm_day', confirm_day, 'allow-oom')
register('forget_ids', forget_ids, 'allow-oom')
register('establish', establish, 'allow-oom')
register('begin_shard', begin_shard, 'allow-oom')
register('claim', claim, 'allow-oom')
register('fold', function(keys, args) return fold(keys, args) end, 'allow-oom')
register('fold_archived', fold_archived, 'allow-oom')
register('quarantine', quarantine, 'allow-oom')
register('requeue', requeue, 'allow-oom')
register('drop', drop, 'allow-oom')
register('restore', restore)
register('mark', mark, 'allow-oom')
register('prune', prune, 'allow-oom')
register('prune_key', prune_key, 'allow-oom')
register('lose', lose, 'allow-oom')
register('replace', replace, 'allow-oom')
register('retire', retire, 'allow-oom')
register('sweep', sweep, 'allow-oom')
register('counted', counted, 'no-writes')
register('now', now, 'no-writes')
