"""Lua scripts for operations that have to be atomic, for Redis 6.2 and later.

A message is "ours" while it is pending in the group under this consumer's name. The scripts skip
messages that another consumer has reclaimed.
"""

DEAD_LETTER = """
-- KEYS: the stream, its dead letters. ARGV: group and consumer (empty: no group, any consumer), id,
-- how many values of metadata, those, and the fields for when the stream has them no more.
local stream, dead = KEYS[1], KEYS[2]
local group, consumer, id, count = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local fields, added, names = {}, {}, {}
if group ~= '' then
  local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
  if not pending then
    return {'settled'}
  end
  if consumer ~= '' and pending[2] ~= consumer then
    return {'taken'}
  end
  local entry = redis.call('XRANGE', stream, id, id)[1]
  if entry then
    fields = entry[2]
  end
end
if #fields == 0 then
  for at = 5 + count, #ARGV do
    fields[#fields + 1] = ARGV[at]
  end
end
if #fields == 0 then
  return {'bare'}
end
if #fields > 7000 then -- Lua can't pass on more values than about 8000
  return {'large'}
end
for at = 5, 4 + count, 2 do
  names[ARGV[at]] = true
end
for at = 1, #fields, 2 do
  if not names[fields[at]] then
    added[#added + 1] = fields[at]
    added[#added + 1] = fields[at + 1]
  end
end
for at = 5, 4 + count do
  added[#added + 1] = ARGV[at]
end
local new = redis.call('XADD', dead, '*', unpack(added))
if group ~= '' then
  redis.call('XACK', stream, group, id)
end
return {'dead', new}
"""

INSPECT = """
-- KEYS: the stream. ARGV: group, consumer (empty: any), id. Whose is it, and what is in it?
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1)[1]
if not pending then
  return {'settled'}
end
if ARGV[2] ~= '' and pending[2] ~= ARGV[2] then
  return {'taken'}
end
local entry = redis.call('XRANGE', KEYS[1], ARGV[3], ARGV[3])[1]
return {'ours', entry and entry[2] or {}}
"""

EXISTS = """
-- KEYS: the stream. ARGV: id.
return #redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])
"""

IS_DEAD = """
-- KEYS: the dead letters. ARGV: id and group of a message, how many of the last letters to look at.
for _, entry in ipairs(redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', ARGV[3])) do
  local fields, same = entry[2], 0
  for at = 1, #fields, 2 do
    local wanted = ({dlq_original_id = ARGV[1], dlq_group = ARGV[2]})[fields[at]]
    if fields[at + 1] == wanted then
      same = same + 1
    end
  end
  if same == 2 then
    return 1
  end
end
return 0
"""

RECLAIM = """
-- KEYS: the stream. ARGV: group, consumer, idle milliseconds, how many at most.
-- Gives id, fields and deliveries of what is ours now, and ids of what is pending without content.
local stream, group, consumer, idle = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local given, gone = {}, {}
for _, one in ipairs(redis.call('XPENDING', stream, group, 'IDLE', idle, '-', '+', ARGV[4])) do
  local id = one[1]
  local entry = redis.call('XAUTOCLAIM', stream, group, consumer, idle, id, 'COUNT', 1)[2][1]
  if entry and entry[1] == id and entry[2] then
    given[#given + 1] = {id, entry[2], one[4] + 1}
  elseif #redis.call('XRANGE', stream, id, id) == 0 then
    redis.call('XACK', stream, group, id)
    gone[#gone + 1] = id
  end
end
return {given, gone}
"""

EXTEND_CLAIMS = """
-- KEYS: the stream. ARGV: group, consumer, ids. Nobody reclaims for a while what is ours still.
-- What is deleted from the stream meanwhile is not touched: from Redis 7 on, claiming it would end
-- that it is pending. Gives how many are ours.
local ours = 0
for at = 3, #ARGV do
  local one = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[at], ARGV[at], 1)[1]
  local is_ours = one and one[2] == ARGV[2]
  if is_ours and #redis.call('XRANGE', KEYS[1], ARGV[at], ARGV[at]) > 0 then
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[at], 'JUSTID')
    ours = ours + 1
  end
end
return ours
"""

RELEASE = """
-- KEYS: the stream. ARGV: group, consumer, idle milliseconds, ids. What is ours looks as if it had
-- been idle for long, and as if we had not been given it; a consumer without any is taken down.
-- What is deleted from the stream stays as it is, to be found so.
local stream, group, consumer = KEYS[1], ARGV[1], ARGV[2]
for at = 4, #ARGV do
  local one = redis.call('XPENDING', stream, group, ARGV[at], ARGV[at], 1)[1]
  local is_ours = one and one[2] == consumer
  if is_ours and #redis.call('XRANGE', stream, ARGV[at], ARGV[at]) > 0 then
    redis.call('XCLAIM', stream, group, consumer, 0, ARGV[at],
      'IDLE', ARGV[3], 'RETRYCOUNT', math.max(one[4] - 1, 0), 'JUSTID')
  end
end
if #redis.call('XPENDING', stream, group, '-', '+', 1, consumer) == 0 then
  redis.call('XGROUP', 'DELCONSUMER', stream, group, consumer)
end
return 1
"""
