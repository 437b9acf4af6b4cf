-- How a stream stands, whatever its entries carry: nothing of them leaves the server.
-- KEYS: the stream. Gives whether there is a stream of this name (1 or 0), how many entries it has,
-- the ids of the first and the last of them (empty: none), and the last id that was ever given.
if redis.call('TYPE', KEYS[1]).ok ~= 'stream' then
  return {0, 0, '', '', ''}
end
local about = redis.call('XINFO', 'STREAM', KEYS[1])
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
