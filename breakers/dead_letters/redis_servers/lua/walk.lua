-- Ids of entries, many at a time, without what they carry.
-- KEYS: the stream. ARGV: the id behind which to begin (empty: from the first), the last id that is
-- wanted, how many ids, and how many bytes of payload it may go through at most.
-- Gives the ids, and whether there may be more.
local after, high, most, budget = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local ids, spent = {}, 0
-- Behind the largest id there is nothing, and Redis refuses to be asked for it.
local largest = '18446744073709551615-18446744073709551615'
local low = after == '' and '-' or '(' .. after

while #ids < most and spent < budget do
  if after == largest then
    return {ids, 0}
  end
  local entry = redis.call('XRANGE', KEYS[1], low, high, 'COUNT', 1)[1]
  if not entry then
    return {ids, 0}
  end
  for _, part in ipairs(entry[2]) do
    spent = spent + #part
  end
  ids[#ids + 1] = entry[1]
  after = entry[1]
  low = '(' .. after
end
return {ids, 1}
