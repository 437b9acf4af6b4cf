-- Put a letter from the archive back among the dead letters, once.
-- KEYS: the dead letters, the notes. ARGV: what the note is kept under, for how many seconds, then
-- names and values in turns.
-- Gives `done` and the new id, or `again` and the new id if that was done before.
local dead, notes = KEYS[1], KEYS[2]
local name, kept = ARGV[1], ARGV[2]
local noted = redis.call('HGET', notes, name)

if noted and noted ~= '' then
  return {'again', noted}
end
redis.call('HSET', notes, name, '')
redis.call('EXPIRE', notes, kept)
local added = redis.pcall('XADD', dead, '*', unpack(ARGV, 3))
if type(added) == 'table' and added.err then
  redis.call('HDEL', notes, name)
  return added
end
redis.call('HSET', notes, name, added)
return {'done', added}
