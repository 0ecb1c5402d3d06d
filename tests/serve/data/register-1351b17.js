// readcache in Claude Code: lines that the model can still see are left out of a tool's result, which says where they
// stand. The server judges, and this module proves: a marker is put in only if what it names stands in the conversation
// above the call. Without the server, or in any doubt, the result is as it would be without readcache.
const SETTINGS = { program: ["readcache"], words: ["claude-code"] }
const TOOLS = /^(Bash|Edit|Grep|MultiEdit|NotebookEdit|Read|Write|mcp__.*)$/
const PATIENCE = 50 // milliseconds for an answer; what a model's turn does not notice
const COMPACTION_PATIENCE = 2000 // once in a conversation, beside a summary that takes a minute
const SOON = 2000 // in which a server that was late or gone is left alone; each time twice as long
const ASIDE = 30_000 // at most
const ROWS = 16 // of the conversation's newest, among which a call is looked for
const MOST_KEPT = 50 // results that the server has to be told of, and forks
const MOST_LINES = 100_000 // that are kept of a reader
const SHORTEST = 80 // characters of lines in a row that the server may omit
const PLACE = /^(?:\s*\d+[\t:-]|[-+ ])/ // what stands before a line in a read, a search or a diff

let transcript // of this conversation
let server // where it listens, and for whom it answers; undefined until that is known, null where none is to be asked
let isStarting = false
let aside = 0
let asideUntil = 0
let unsettled = [] // what was shown in place of what the server believes
const cut = new Set() // readers from whom results were taken
const inherited = new Map() // of each fork, the messages that it began with, and whose transcript tells of its requests
const lines = new Map() // of each reader that began in this process, the lines that it was shown or wrote
const ended = new Map() // of each reader, where its last command ended
const doneAt = new Map() // of each reader, when its last results came: the newest request is not older

function leaveAside(milliseconds) {
  aside = Math.min(ASIDE, milliseconds)
  asideUntil = Date.now() + aside
}

// Starts the server unless it runs. The first calls may go without it.
async function start($) {
  if (isStarting) return
  isStarting = true
  try {
    const cwd = await $.session.cwd()
    const { exitCode, stdout } = await $.process.run([...SETTINGS.program, "serve", "--start"], { cwd })
    if (exitCode !== 0) return leaveAside(ASIDE)
    server = stdout ? { ...JSON.parse(stdout), cwd } : null
    await ask($, { session_id: await $.session.id(), hook_event_name: "Begin" })
  } catch {
    leaveAside(ASIDE) // it is tried again later
  } finally {
    isStarting = false
  }
}

// The server's answer to an event; undefined where there is none in time. Claude Code waits at the end of a turn for a
// request that is not answered, so the server is started anew then: that ends one that hangs.
async function ask($, event, milliseconds = PATIENCE) {
  if (server === null || Date.now() < asideUntil) return undefined
  if (server === undefined) return void start($)
  const { socket: socketPath, ...head } = server
  const settled = unsettled.splice(0)
  const body = JSON.stringify({ ...head, words: SETTINGS.words }) + "\n" + JSON.stringify({ ...event, settled })
  let timer
  const late = new Promise((end) => (timer = setTimeout(end, milliseconds)))
  const asking = $.http.fetch("http://readcache/", { method: "POST", body, socketPath }).catch(() => undefined)
  const answer = await Promise.race([asking, late])
  clearTimeout(timer)
  if (answer) {
    aside = 0
    return answer.ok ? JSON.parse(answer.text || "{}") : undefined
  }
  unsettled.unshift(...settled)
  leaveAside(2 * aside || SOON)
  server = undefined
  void start($)
}

// The messages above the answer that made this call; undefined where it is not there.
function messagesAbove(call, messages) {
  if (!Array.isArray(messages)) return undefined
  const asked = messages.findIndex(({ content }) => blocksOf(content).some((block) => block.id === call))
  return asked < 0 ? undefined : messages.slice(0, asked)
}

// True if all texts stand in the reader's conversation, above the answer that made this call.
function stand(messages, agent, call, sources) {
  const own = messagesAbove(call, messages)
  const above = [...(inherited.get(agent)?.messages ?? []), ...(own ?? [])]
  const blocks = above.flatMap(({ content }) => blocksOf(content))
  const isThere = ([name, text]) => {
    const named = blocks.filter((block) => (name ? [block.id, block.tool_use_id].includes(name) : block.type === "text"))
    return named.flatMap(textsOf).some((shown) => shown.includes(text))
  }
  return own !== undefined && sources.length > 0 && sources.every(isThere)
}

const linesIn = (text) => text.split("\n").map((line) => line.replace(PLACE, "").trim())

// Keeps the lines of a text that a reader has before it.
function keepLines(agent, text) {
  const known = lines.get(agent)
  for (const line of known ? linesIn(text) : []) known.add(line)
  if (known?.size > MOST_LINES) lines.delete(agent)
}

// False if the server cannot omit anything of this text: no lines of it were ever before the reader.
function mayBeKnown(agent, text) {
  const known = lines.get(agent)
  let run = 0
  const isLong = (line) => (run = !line || known.has(line) ? run + line.length : 0) >= SHORTEST
  return !known || linesIn(text).some(isLong)
}

function blocksOf(content) {
  return typeof content === "string" ? [{ type: "text", text: content }] : content
}

// What a block shows: its text, its result, or what the model wrote in a call.
function textsOf({ type, text, content, input }) {
  if (type === "text") return [text]
  if (type === "tool_use") return Object.values(input).filter((value) => typeof value === "string")
  return typeof content === "string" ? [content] : (content ?? []).map((block) => block.text ?? "")
}

// The result in a row, if it is one text: { block, text }.
function resultIn(content) {
  const block = content.length === 1 && content[0].type === "tool_result" ? content[0] : undefined
  const texts = block ? textsOf(block) : []
  const isText = typeof block?.content === "string" || block?.content?.[0]?.type === "text"
  return isText && texts.length === 1 ? { block, text: texts[0] } : undefined
}

// The row with this text as its result, in the shape that it has.
function withText(row, block, text) {
  const content = typeof block.content === "string" ? text : [{ ...block.content[0], text }]
  return { ...row, message: { ...row.message, content: [{ ...block, content }] } }
}

// What the server is told of a result; undefined for one that it has no use for. `began`: where a command did, if no
// other was running.
async function eventOf($, row, reader, { block, text }) {
  const [rows, cwd, session_id] = await Promise.all([
    $.session.messages({ last: ROWS, ...reader }),
    $.session.cwd(),
    $.session.id(),
  ])
  const uses = Array.isArray(rows) ? rows.flatMap(({ toolUses }) => toolUses) : []
  const call = uses.find(({ tool_use_id }) => tool_use_id === block.tool_use_id)
  if (!call || !TOOLS.test(call.tool)) return undefined
  const isAlone = uses.every((use) => use.text !== undefined || use === call)
  const began = isAlone ? ended.get(row.agentId) : undefined
  ended.set(row.agentId, isAlone ? cwd : undefined)
  const recorded = inherited.get(row.agentId) ?? { by: row.agentId, since: doneAt.get(row.agentId) ?? 0 }
  const requests = { transcript_path: transcript, recorded_by: recorded.by, since: recorded.since }
  const known = { session_id, agent_id: row.agentId, cwd, began, ...requests, isAlone }
  const made = { tool_use_id: block.tool_use_id, tool_name: call.tool, tool_input: call.input }
  for (const said of Object.values(call.input)) if (typeof said === "string") keepLines(row.agentId, said)
  return { ...known, ...made, is_error: block.is_error === true, text }
}

// The server is told of a result, and answers; undefined where it has no use for it.
async function judge($, row, reader, result) {
  const came = Date.now()
  const event = await eventOf($, row, reader, result)
  if (!event) return undefined
  const answer = await ask($, { ...event, hook_event_name: "ToolResult" })
  if (event.isAlone) doneAt.set(row.agentId, came)
  return { event, answer }
}

// The server learns what was shown in place of what it believes.
function settle({ event, answer }, shown) {
  if (answer && shown === (answer.text ?? event.text)) return
  const { agent_id, tool_use_id } = event
  unsettled = [...unsettled, { agent_id, tool_use_id, text: shown }].slice(-MOST_KEPT)
}

// Most results hold nothing that the reader has seen: the server is told of them, and its answer is not waited for.
async function shorten($, e, next) {
  const result = resultIn(e.message.content)
  if (!result || server === null || Date.now() < asideUntil) return next(e)
  const reader = e.agentId ? { agentId: e.agentId } : {}
  const judging = judge($, e, reader, result).catch(() => undefined)
  let row = e
  if (mayBeKnown(e.agentId, result.text)) {
    const { answer } = (await judging) ?? {}
    const isShorter = answer?.text !== undefined && !cut.has(e.agentId)
    const above = isShorter ? await $.session.messages({ as: "api", ...reader }).catch(() => undefined) : undefined
    const isTrue = isShorter && stand(above, e.agentId, result.block.tool_use_id, answer.sources)
    if (isTrue) row = withText(e, result.block, answer.text)
  }
  keepLines(e.agentId, result.text)
  const kept = await next(row)
  const shown = resultIn(kept.message?.content ?? [])?.text ?? ""
  void judging.then((judged) => judged && settle(judged, shown))
  return kept
}

// A fork begins with the messages of its parent above the answer that made it. Claude Code does not record its requests;
// its parent's tell as well whether results are taken out.
async function noteFork($, e, next) {
  const parent = e.parentAgentId ? { agentId: e.parentAgentId } : {}
  const since = doneAt.get(e.parentAgentId) ?? 0
  const messages = e.fork ? messagesAbove(e.tool_use_id, await $.session.messages({ as: "api", ...parent })) : undefined
  const done = await next(e)
  if (done.agentId && !e.fork && !lines.has(done.agentId)) lines.set(done.agentId, new Set())
  if (!messages || !done.agentId) return done
  if (inherited.size >= MOST_KEPT) inherited.clear()
  inherited.set(done.agentId, { by: e.parentAgentId, since, ...inherited.get(e.parentAgentId), messages })
  const known = { session_id: await $.session.id(), agent_id: done.agentId, parent_id: e.parentAgentId }
  await ask($, { ...known, hook_event_name: "Forked" })
  return done
}

export function register(on) {
  if (SETTINGS.words.includes("--off")) return
  on("session.start", async ($, e, next) => {
    ended.set(undefined, e.cwd)
    void start($)
    return next(e)
  })
  on("classic.UserPromptSubmit", async ($, e, next) => {
    if (e.agent_id) return next(e)
    transcript = e.transcript_path
    doneAt.set(undefined, Date.now())
    const before = lines.has(undefined) ? undefined : await $.session.messages({ last: 1 }).catch(() => undefined)
    if (before?.length === 0) lines.set(undefined, new Set())
    return next(e)
  })
  on("session.append", { door: "tool-result" }, shorten)
  on("session.append", { door: "attachment", message: { name: "tool_results_cut" } }, async ($, e, next) => {
    cut.add(e.agentId)
    return next(e)
  })
  on("agent.spawn", noteFork)
  on("session.compact", async ($, e, next) => {
    const done = await next(e)
    if (!done.messages || e.trigger === "precompute") return done
    cut.delete(e.agentId)
    inherited.delete(e.agentId)
    const kept = done.messages.flatMap(({ toolResults }) => (toolResults ?? []).map(({ tool_use_id }) => tool_use_id))
    const event = { session_id: await $.session.id(), agent_id: e.agentId, hook_event_name: "Compacted", kept }
    const answer = await ask($, event, COMPACTION_PATIENCE)
    if (!answer?.text) return done
    keepLines(e.agentId, answer.text)
    return { ...done, messages: [...done.messages, { role: "user", text: answer.text, toolUses: [] }] }
  })
}
