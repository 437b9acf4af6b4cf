-- Some entries of a stream, from one end or the other, without ever holding much of it.
-- KEYS: the stream. ARGV: the first and the last id of the range, both included; `newest` to begin
-- with the last; how many entries, bytes of one value, fields of an entry, and bytes in all at most.
-- Gives for each entry: its id, names and beginnings of values in turns, lengths of the values, and
-- how many fields it has; then whether there may be more.
local stream, low, high, order = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local most, longest = tonumber(ARGV[4]), tonumber(ARGV[5])
local most_fields, budget = tonumber(ARGV[6]), tonumber(ARGV[7])
local given, spent, more = {}, 0, 0

local function next_entry()
  if order == 'newest' then
    return redis.call('XREVRANGE', stream, high, low, 'COUNT', 1)[1]
  end
  return redis.call('XRANGE', stream, low, high, 'COUNT', 1)[1]
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
  local pairs_cut, sizes = {}, {}
  for at = 1, #fields, 2 do
    local name, value = fields[at], fields[at + 1]
    spent = spent + #name + #value
    if #sizes < most_fields then
      pairs_cut[#pairs_cut + 1] = name
      pairs_cut[#pairs_cut + 1] = string.sub(value, 1, longest)
      sizes[#sizes + 1] = #value
    end
  end
  given[#given + 1] = {id, pairs_cut, sizes, #fields / 2}
  -- Behind the largest id there is nothing, and Redis refuses to be asked for it.
  if id == '18446744073709551615-18446744073709551615' and order ~= 'newest' then
    break
  end
  if order == 'newest' then
    high = '(' .. id
  else
    low = '(' .. id
  end
end
return {given, more}
