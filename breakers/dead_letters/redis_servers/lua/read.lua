-- Some entries of a stream, from one end or the other, without ever holding much of it.
-- KEYS: the stream. ARGV: the first and the last id of the range, both included; `newest` to begin
-- with the last, or `these` for no range but the ids at the end of ARGV, those that are there; how
-- many entries, bytes of one value, fields of an entry, bytes that are kept of an entry, and bytes
-- gone through in all at most.
-- Gives for each entry: its id, names and beginnings of values in turns, lengths of the values (and
-- of what a name lost when nothing more was kept), and how many fields it has; then whether there
-- may be more.
local stream, low, high, order = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local most, longest, most_fields = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local most_kept, budget = tonumber(ARGV[7]), tonumber(ARGV[8])
local given, spent, more, looked_at = {}, 0, 0, 8

local function next_entry()
  if order == 'newest' then
    return redis.call('XREVRANGE', stream, high, low, 'COUNT', 1)[1]
  end
  if order ~= 'these' then
    return redis.call('XRANGE', stream, low, high, 'COUNT', 1)[1]
  end
  while looked_at < #ARGV do
    looked_at = looked_at + 1
    local entry = redis.call('XRANGE', stream, ARGV[looked_at], ARGV[looked_at])[1]
    if entry then
      return entry
    end
  end
end

while true do
  if #given >= most or spent >= budget then
    more = 1
    break
  end
  local entry = next_entry()
  if not entry then
    break
  end
  local id, fields = entry[1], entry[2]
  local pairs_cut, sizes, left = {}, {}, most_kept
  local function cut(part, length)
    local some = string.sub(part, 1, math.min(length, left))
    left = left - #some
    pairs_cut[#pairs_cut + 1] = some
    return #part - #some
  end
  for at = 1, #fields, 2 do
    local name, value = fields[at], fields[at + 1]
    spent = spent + #name + #value
    if #sizes < most_fields then
      sizes[#sizes + 1] = cut(name, #name) + #value
      cut(value, longest)
    end
  end
  given[#given + 1] = {id, pairs_cut, sizes, #fields / 2}
  -- Behind the largest id there is nothing, and Redis refuses to be asked for it.
  if id == '18446744073709551615-18446744073709551615' and order == 'oldest' then
    break
  end
  if order == 'newest' then
    high = '(' .. id
  else
    low = '(' .. id
  end
end
return {given, more}
