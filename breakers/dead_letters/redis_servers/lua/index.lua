-- What the index keeps of entries: of each no more than the fields that dead letters have.
-- KEYS: the stream. ARGV: the id behind which to begin (empty: from the first); how many bytes of a
-- value, entries, and bytes of payload at most; the names of the fields that are wanted.
-- Gives for each entry: its id, the length of all names and values, and the first of each of those
-- fields, names and beginnings of values in turns; then whether there may be more.
local stream, after = KEYS[1], ARGV[1]
local longest, most, budget = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local given, spent, is_wanted = {}, 0, {}
for at = 5, #ARGV do
  is_wanted[ARGV[at]] = true
end
-- Behind the largest id there is nothing, and Redis refuses to be asked for it.
local largest = '18446744073709551615-18446744073709551615'
local low = after == '' and '-' or '(' .. after

while #given < most and spent < budget do
  if after == largest then
    return {given, 0}
  end
  local entry = redis.call('XRANGE', stream, low, '+', 'COUNT', 1)[1]
  if not entry then
    return {given, 0}
  end
  local id, fields = entry[1], entry[2]
  local wanted, seen, size = {}, {}, 0
  for at = 1, #fields, 2 do
    local name, value = fields[at], fields[at + 1]
    size = size + #name + #value
    if is_wanted[name] and not seen[name] then
      seen[name] = true
      wanted[#wanted + 1] = name
      wanted[#wanted + 1] = string.sub(value, 1, longest)
    end
  end
  spent = spent + size
  given[#given + 1] = {id, size, wanted}
  after = id
  low = '(' .. id
end
return {given, 1}
