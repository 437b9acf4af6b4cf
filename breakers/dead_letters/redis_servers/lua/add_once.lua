-- Put a dead letter's message into its origin unless a note says that it was: for a cluster that
-- keeps the two on different nodes, where the letter can only be taken away afterwards.
-- KEYS: the origin, the notes. ARGV: the letter's id, for how many seconds a note is kept, `add` or
-- `look`, then names and values of the message in turns.
-- Gives `done` and the new id; `again` and the new id if that was done before; or `gone`.
local origin, notes = KEYS[1], KEYS[2]
local id, kept, what = ARGV[1], ARGV[2], ARGV[3]
local noted = redis.call('HGET', notes, id)

if noted and noted ~= '' then
  return {'again', noted}
end
if what == 'look' then
  return {'gone'}
end

redis.call('HSET', notes, id, '')
redis.call('EXPIRE', notes, kept)
local added = redis.pcall('XADD', origin, '*', unpack(ARGV, 4))
if type(added) == 'table' and added.err then
  redis.call('HDEL', notes, id)
  return added
end
redis.call('HSET', notes, id, added)
return {'done', added}
