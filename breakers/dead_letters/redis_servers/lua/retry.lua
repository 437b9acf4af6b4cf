-- Put a dead letter's message back into its origin and take the letter away: both, or neither.
-- KEYS: the dead letters, the origin, the notes. ARGV: the letter's id, for how many seconds a note
-- is kept, then names and values of the message in turns.
-- Gives `done` and the new id; `again` and the new id if that was done before; or `gone`.
local dead, origin, notes = KEYS[1], KEYS[2], KEYS[3]
local id, kept = ARGV[1], ARGV[2]
local noted = redis.call('HGET', notes, id)

if #redis.call('XRANGE', dead, id, id) == 0 then
  if noted and noted ~= '' and noted ~= 'dropped' then
    return {'again', noted}
  end
  return {'gone'}
end

-- Whatever may be refused (no memory, no permission, another type) is tried before anything is
-- added, so that nothing is left half done.
redis.call('HSET', notes, id, '')
redis.call('EXPIRE', notes, kept)
local permitted = redis.pcall('XDEL', dead, '0-0')
if type(permitted) == 'table' and permitted.err then
  redis.call('HDEL', notes, id)
  return permitted
end
local added = redis.pcall('XADD', origin, '*', unpack(ARGV, 3))
if type(added) == 'table' and added.err then
  redis.call('HDEL', notes, id)
  return added
end
redis.call('HSET', notes, id, added)
redis.call('XDEL', dead, id)
return {'done', added}
