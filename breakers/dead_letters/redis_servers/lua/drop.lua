-- Take dead letters away.
-- KEYS: the dead letters, the notes. ARGV: for how many seconds a note is kept, then ids.
-- Gives for each id: `done`; `again` if it was dropped before; or `gone`.
local dead, notes = KEYS[1], KEYS[2]
local kept = ARGV[1]
local given = {}
redis.call('HLEN', notes)

for at = 2, #ARGV do
  local id = ARGV[at]
  if redis.call('XDEL', dead, id) == 1 then
    -- Without memory left there is no note, but letters can still be dropped.
    redis.pcall('HSET', notes, id, 'dropped')
    redis.pcall('EXPIRE', notes, kept)
    given[#given + 1] = 'done'
  elseif redis.call('HGET', notes, id) == 'dropped' then
    given[#given + 1] = 'again'
  else
    given[#given + 1] = 'gone'
  end
end
return given
