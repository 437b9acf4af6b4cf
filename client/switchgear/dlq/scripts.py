"""Lua scripts for operations that have to be atomic, for Redis 6.2 and later.

A message is "ours" while it is pending in the group under this consumer's name. The scripts skip
messages that another consumer has reclaimed.
"""

DEAD_LETTER = """
-- KEYS: the stream, its dead letters. ARGV: group and consumer (empty: no group, any consumer), id,
-- number of metadata values, these values, and the fields to use if the stream has no such entry.
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
if #fields > 7000 then -- unpack() fails above about 8000 values
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
-- KEYS: the stream. ARGV: group, consumer (empty: any), id. Returns the state, and the fields.
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
-- KEYS: the dead letters. ARGV: id and group of a message, number of the last letters to search.
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
-- KEYS: the stream. ARGV: group, consumer, idle milliseconds, maximum number of messages.
-- Returns id, fields and deliveries of each reclaimed message, and the ids of deleted messages.
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
-- KEYS: the stream. ARGV: group, consumer, ids. Resets the idle time of messages that are ours.
-- Deleted messages are skipped, since XCLAIM of Redis 7 would remove them from the pending list.
-- Returns the number of messages that are ours.
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
-- KEYS: the stream. ARGV: group, consumer, idle milliseconds, ids. Makes our messages reclaimable
-- at once, and does not count this delivery; deletes a consumer without pending messages.
-- Deleted messages are skipped, so that the next reclaim finds and acknowledges them.
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
