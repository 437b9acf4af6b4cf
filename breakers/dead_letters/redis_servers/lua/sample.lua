-- How a stream stands, whatever its entries carry: nothing of them leaves the server.
-- KEYS: the stream. ARGV: how many entries it had, and the ids of the first and the last of them, as
-- known from an earlier look; or nothing. What is so still is not looked at again: what Redis tells
-- of a stream comes with copies of its first and its last entry.
-- Gives whether there is a stream of this name (1 or 0; 2 if it stands as it is known), how many
-- entries it has, the ids of the first and the last of them (empty: none), and the last id that was
-- ever given.
local stream = KEYS[1]
if redis.call('TYPE', stream).ok ~= 'stream' then
  return {0, 0, '', '', ''}
end
if #ARGV > 0 and redis.call('XLEN', stream) == tonumber(ARGV[1]) then
  local first, last = ARGV[2], ARGV[3]
  local largest = '18446744073709551615-18446744073709551615'
  local more = last ~= largest and redis.call('XRANGE', stream, '(' .. last, '+', 'COUNT', 1)[1]
  if not more and not redis.call('XRANGE', stream, '-', '(' .. first, 'COUNT', 1)[1] then
    return {2, 0, '', '', ''}
  end
end
local about = redis.call('XINFO', 'STREAM', stream)
local said = {}
for at = 1, #about, 2 do
  said[about[at]] = about[at + 1]
end
local first, last = said['first-entry'], said['last-entry']
return {
  1,
  said['length'],
  type(first) == 'table' and first[1] or '',
  type(last) == 'table' and last[1] or '',
  said['last-generated-id'],
}
