"""Lua scripts that run inside the server, each as one atomic step.

A session is one hash, so the server can lose, evict or expire it only as a whole. Its fields are:

    v, home             the schema version. The server history that took the last commit.
    last, low           the number of the newest event. The number of the oldest event.
    e<number>           an event: `tag kind agent at text-name body`.
    t<text-name>        the event's text. Its name is `-` if it has no text, and `0` if the text is empty.
    i<agent> <what> <name>   the calls with this name: `number=call` each.
    c<agent> <call>     the numbers of the events that show the call's text, or what it wrote.
    g<agent>, w         the numbers of a reader's other events. The numbers of events that concern every reader.
    x<agent>            number of events, time of the last one, number and call of the newest delivery, and the number
                        of the event at which the view begins.
    a, z                the readers. The time when the session was last added to the list of sessions.

Names are quoted as in a URL and contain no blank. The tag is a random number, one for each commit. It proves that a
reader's position belongs to this log, and not to a log that was lost since.

`home` is the name that the server's replication gives its history (`master_replid`). It changes after a restart, and
when a replica takes over. Acknowledged events may then be lost, so a new event says that nothing is visible.
"""

SCHEMA = "1"

_BEGIN = """
local S, L = KEYS[1], KEYS[2]
local get = function(field) return redis.call('HGET', S, field) end
local set = function(field, value) redis.call('HSET', S, field, value) end
local add = function(field, value) set(field, (get(field) or '') .. value) end
local tag_of = function(record) return record and string.match(record, '^%d+') or '' end
local function unlock(token)
  if token ~= '' and redis.call('GET', L) == token then redis.call('DEL', L) end
end
local function context(agent)
  local count, at, newest, floor, call = string.match(get('x' .. agent) or '', '^(%d+) (%S+) (%d+) (%d+) =(%S*)$')
  return tonumber(count or 0), at or '0', tonumber(newest or 0), tonumber(floor or 0), call or ''
end
local version = get('v')
local info = redis.call('INFO', 'replication')
local _, _, home = string.find(info, 'master_replid:(%x+)')
if not home then return {'homeless'} end
if version and version ~= '%SCHEMA%' then return {'version', version} end
local function notice_loss(tag)
  if not version or get('home') == home then return end
  local now, last = redis.call('TIME'), tonumber(get('last')) + 1
  set('e' .. last, tag .. ' lost  ' .. now[1] .. ' - {}')
  add('w', last .. ' ')
  redis.call('HSET', S, 'last', last, 'home', home)
end
local out = {'ok'}
local function give(number)
  local record = get('e' .. number) or '0 lost  0 - {}'
  local name = string.match(record, '^%S* %S* %S* %S* (%S*) ')
  out[#out + 1] = number
  out[#out + 1] = record
  out[#out + 1] = name ~= '-' and name ~= '0' and get('t' .. name) or ''
end
""".replace("%SCHEMA%", SCHEMA)

# ARGV: token ('' for no lock), milliseconds, after: number, its tag, reader ('*' for all), most records, a new tag.
# Returns: last, its tag, number and tag of the last event read, when the session was listed; then number, record, text.
READ = (
    _BEGIN
    + """
local token, after, agent = ARGV[1], tonumber(ARGV[3]), ARGV[5]
if token ~= '' and not redis.call('SET', L, token, 'NX', 'PX', ARGV[2]) and redis.call('GET', L) ~= token then
  return {'locked'}
end
notice_loss(ARGV[7])
if after > 0 and tag_of(get('e' .. after)) ~= ARGV[4] then
  unlock(token)
  return {'gone'}
end
local last, most = tonumber(get('last') or 0), tonumber(ARGV[6])
local number, given = math.max(after + 1, tonumber(get('low') or 1)), 0
out = {'ok', last, tag_of(get('e' .. last)), 0, '', get('z') or ''}
while number <= last and given < most do
  local record = get('e' .. number)
  local _, kind, of = string.match(record or '0 lost  ', '^(%S*) (%S*) (%S*) ')
  if agent == '*' or of == agent or kind == 'wrote' or kind == 'lost' then give(number); given = given + 1 end
  number = number + 1
end
out[4], out[5] = number - 1, tag_of(get('e' .. (number - 1)))
return out
"""
)

# ARGV: reader, a new tag, 1 to include events that are not deliveries, the number of index fields, these fields, calls.
# Returns: number, record, text of each.
FIND = (
    _BEGIN
    + """
local agent, fields = ARGV[1], tonumber(ARGV[4])
notice_loss(ARGV[2])
local _, _, _, floor, newest = context(agent)
local calls, numbers, found = {}, {}, {}
local function find(field)
  for number, call in string.gmatch(get(field) or '', '(%d+)=(%S*)') do
    if tonumber(number) >= floor then calls[call] = true end
  end
end
local function note(field)
  for number in string.gmatch(get(field) or '', '%d+') do
    if tonumber(number) >= floor then numbers[tonumber(number)] = true end
  end
end
for place = 5, 4 + fields do find(ARGV[place]) end
for call in pairs(calls) do found[#found + 1] = call end
for _, call in ipairs(found) do find('i' .. agent .. ' source ' .. call) end
for place = 5 + fields, #ARGV do calls[ARGV[place]] = true end
if ARGV[3] == '1' then
  calls[newest] = true
  note('g' .. agent)
  note('w')
end
for call in pairs(calls) do
  note('c' .. agent .. ' ' .. call)
  local before  -- the last use of the call ID below the floor: an ID of two calls does not say which one is meant
  for number in string.gmatch(get('c' .. agent .. ' ' .. call) or '', '%d+') do
    if tonumber(number) < floor then before = tonumber(number) end
  end
  if before then numbers[before] = true end
end
local order = {}
for number in pairs(numbers) do order[#order + 1] = number end
table.sort(order)
for _, number in ipairs(order) do give(number) end
return out
"""
)

# ARGV: token, last as it was read, its tag, the tag of this commit, milliseconds to keep the session, when it was
# listed; then steps:
#   E reader kind at call body text-name text 1-if-nothing-stays how-many-index-fields …   append an event
#   R number kind body text index-field   replace an event and its text, and remove it from this field
#   X                                remove everything
# A text that is not empty is sent with the name `+`, and stored under its event's number.
# A second run with the same tag does nothing.
COMMIT = (
    _BEGIN
    + """
local token, base, tag = ARGV[1], tonumber(ARGV[2]), ARGV[4]
local last = tonumber(get('last') or 0)
if last > base and tag_of(get('e' .. (base + 1))) == tag then unlock(token) return {'ok'} end
local is_same = last == base and tag_of(get('e' .. last)) == ARGV[3] and (not version or get('home') == home)
if not is_same then unlock(token) return {'changed'} end
local function keep(field, stays)
  local kept = {}
  for entry in string.gmatch(get(field) or '', '%S+ ') do
    if stays(tonumber(string.match(entry, '^%d+'))) then kept[#kept + 1] = entry end
  end
  if #kept > 0 then set(field, table.concat(kept)) else redis.call('HDEL', S, field) end
end
local place, low = 7, nil
local function take()
  place = place + 1
  return ARGV[place - 1]
end
while place <= #ARGV do
  local step = take()
  if step == 'E' then
    local agent, kind, at, call, body, name, text = take(), take(), take(), take(), take(), take(), take()
    local nothing_stays, fields = take() == '1', tonumber(take())
    local count, _, newest, floor, newest_call = context(agent)
    last = last + 1
    if name == '+' then
      name = last
      set('t' .. name, text)
    end
    set('e' .. last, table.concat({tag, kind, agent, at, name, body}, ' '))
    if count == 0 then add('a', '=' .. agent .. ' ') end
    if kind == 'delivered' then newest, newest_call = last, call end
    if kind == 'delivered' or kind == 'settled' then
      add('c' .. agent .. ' ' .. call, last .. ' ')
    else
      add('g' .. agent, last .. ' ')
      if kind == 'wrote' then
        add('w', last .. ' ')
        add('c' .. agent .. ' ' .. call, last .. ' ')
      end
    end
    local function stays(number) return number >= floor end
    for _ = 1, fields do
      local field = take()
      if floor > 0 and #(get(field) or '') > 1000 then keep(field, stays) end
      add(field, last .. '=' .. call .. ' ')
    end
    if nothing_stays and newest > 0 then
      floor = newest
      keep('g' .. agent, stays)
    end
    set('x' .. agent, table.concat({count + 1, at, newest, floor, '=' .. newest_call}, ' '))
  elseif step == 'R' then
    local number, kind, body, text, field = tonumber(take()), take(), take(), take(), take()
    local old, _, agent, at, name = string.match(get('e' .. number), '^(%S*) (%S*) (%S*) (%S*) (%S*) ')
    redis.call('HDEL', S, 't' .. name)
    if text ~= '' then name = number; set('t' .. name, text) elseif name ~= '-' then name = '0' end
    set('e' .. number, table.concat({old, kind, agent, at, name, body}, ' '))
    keep(field, function(other) return other ~= number end)
  else
    redis.call('UNLINK', S)
    low = last + 1
  end
end
if redis.call('EXISTS', S) == 1 then
  if low then set('low', low) end
  redis.call('HSET', S, 'v', '%SCHEMA%', 'last', last, 'home', home, 'z', ARGV[6])
  redis.call('PEXPIRE', S, ARGV[5])
end
unlock(token)
return {'ok'}
""".replace("%SCHEMA%", SCHEMA)
)

# Returns: each reader, and its field `x`.
READERS = (
    _BEGIN
    + """
for agent in string.gmatch(get('a') or '', '=(%S*) ') do
  out[#out + 1] = agent
  out[#out + 1] = get('x' .. agent)
end
return out
"""
)

# KEYS: only the lock. ARGV: token.
RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"
