// readcache in Claude Code: omit from a tool's result the lines that the model can still see, and say where they are.
// The server judges and this module proves: a marker is inserted only if the lines it names are in the conversation
// above the call. Without the server, or if in doubt, the result is the same as without readcache.
const SETTINGS = { program: ["readcache"], words: ["claude-code"] }
const TOOLS = /^(Bash|Edit|Grep|MultiEdit|NotebookEdit|Read|Write|mcp__.*)$/
const PATIENCE = 500 // milliseconds to wait for a shorter result; a model's turn takes seconds
const COMPACTION_PATIENCE = 2000 // milliseconds; a compaction's summary takes a minute
const MOST_LATE = 3 // late answers in a row; then wait for none until one comes in time
const SILENT = 2000 // milliseconds without an answer; then check if the server hangs
const SOON = 2000 // milliseconds until another server may be started; doubled each time
const ASIDE = 30_000 // milliseconds: the longest such pause
const ROWS = [16, 128, 1000] // numbers of newest rows in which to look for a call, one after the other
const MOST_KEPT = 50 // at most: results kept for the server, forks, and texts of errors
const MOST_ASKED = 8 // unanswered requests at most, because Claude Code waits for them at the end of a turn
const MOST_LINES = 100_000 // kept for a reader at most
const LONGEST_REFUSAL = 500 // characters that `readcache recall`, or the shell in its place, prints at most
const SHORTEST = 80 // characters: the shortest run of consecutive lines that the server may omit
const PLACE = /^(?:\s*\d+[\t:-]|[-+ ])/ // the prefix of a line in a read, a search or a diff

let transcript // of this conversation
let server // its socket, and for whom it answers; undefined: not known yet; null: use no server
let starting // a promise while the server is being started
let notBefore = 0 // time in milliseconds at which the server may be started again
let pause = 0
let late = 0 // late answers in a row
let asked = 0 // unanswered requests
let takesLast = true // false if this Claude Code cannot return only the newest rows
const unsettled = [] // reports of what was shown for the server's answers
const missed = [] // results about which the server was not asked
const errors = new Map() // errors of this plugin: text -> number of times
const lost = new Map() // results that the server never judges: reason -> number
const cut = new Set() // readers whose older results Claude Code removed
const inherited = new Map() // fork -> its first messages, and the agent whose transcript records its requests
const lines = new Map() // reader that began in this process -> the lines that it was shown or wrote
const ended = new Map() // reader -> the directory in which its last command ended
const doneAt = new Map() // reader -> time at which its last results came; its newest request is not older

function count(counts, name, more = 1) {
  if (counts.size < MOST_KEPT || counts.has(name)) counts.set(name, more + (counts.get(name) ?? 0))
}

const textOf = (error) => `${error?.name ?? "Error"}: ${error?.message ?? error}`.slice(0, 500)

// Keep an error for the server; `readcache doctor` reports it.
function noteError(error) {
  count(errors, textOf(error))
}

// Return the reports to send with the next event, and forget them.
function takeTold() {
  const told = { settled: unsettled.splice(0), missed: missed.splice(0), errors: [...errors], lost: [...lost] }
  errors.clear()
  lost.clear()
  return told
}

function giveBack(told) {
  unsettled.unshift(...told.settled)
  missed.unshift(...told.missed)
  for (const [text, more] of told.errors) count(errors, text, more)
  for (const [why, more] of told.lost) count(lost, why, more)
}

// Start the server unless it runs or was just started. This also ends a server that hangs.
function start($) {
  if (Date.now() < notBefore) return undefined
  return (starting ??= begin($).finally(() => (starting = undefined)))
}

async function begin($) {
  pause = Math.min(ASIDE, 2 * pause || SOON)
  notBefore = Date.now() + pause
  try {
    const cwd = await $.session.cwd()
    const { exitCode, stdout } = await $.process.run([...SETTINGS.program, "serve", "--start"], { cwd })
    if (exitCode !== 0) throw new Error(`the server was not started: status ${exitCode}`)
    server = stdout ? { ...JSON.parse(stdout), cwd } : null
    // The server loads its modules now, before the first result.
    void ask($, { session_id: await $.session.id(), hook_event_name: "Begin" }).catch(noteError)
  } catch (error) {
    noteError(error)
    notBefore = Date.now() + pause
  }
}

// Return the server's answer to an event, even if it is late; undefined if there is none.
async function ask($, event) {
  if (server === undefined) await start($)
  if (!server || asked >= MOST_ASKED) return undefined
  const known = server
  const { socket: socketPath, ...head } = known
  const told = takeTold()
  const params = { ...head, words: SETTINGS.words, event: JSON.stringify({ ...event, ...told }) }
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "hook", params })
  const silent = setTimeout(() => start($), SILENT)
  asked += 1
  try {
    const answer = await $.http.fetch("http://readcache/", { method: "POST", body, socketPath })
    pause = 0
    const { result, error } = JSON.parse(answer.text)
    if (!error) return JSON.parse(result || "{}")
    noteError(new Error(`the server did not answer: ${error.message}`))
  } catch {
    if (server === known) server = undefined // it has ended
    void start($)
  } finally {
    clearTimeout(silent)
    asked -= 1
  }
  giveBack(told)
  return undefined
}

// Return the result of a promise, or undefined if it takes longer than `milliseconds`.
async function within(milliseconds, promise) {
  let timer
  const end = new Promise((done) => (timer = setTimeout(done, milliseconds)))
  try {
    return await Promise.race([promise, end])
  } finally {
    clearTimeout(timer)
  }
}

// Return the messages above the answer that made this call; undefined if the answer is not there.
function messagesAbove(call, messages) {
  if (!Array.isArray(messages)) return undefined
  const asked = messages.findIndex(({ content }) => blocksOf(content).some((block) => block.id === call))
  return asked < 0 ? undefined : messages.slice(0, asked)
}

// Return true if a text contains these whole lines consecutively. White space after the last line may be missing,
// because Claude Code trims a text before it appends a reminder.
function hasLines(text, wanted) {
  const [shown, piece] = ["\n" + text, "\n" + wanted.trimEnd()]
  for (let at = shown.indexOf(piece); at >= 0; at = shown.indexOf(piece, at + 1)) {
    if (!shown.slice(at + piece.length).split("\n", 1)[0].trim()) return true
  }
  return false
}

// Return true if all texts are in the reader's conversation, above the answer that made this call.
function stand(messages, agent, call, sources) {
  const own = messagesAbove(call, messages)
  const above = [...(inherited.get(agent)?.messages ?? []), ...(own ?? [])]
  const blocks = above.flatMap(({ content }) => blocksOf(content))
  const isThere = ([name, text]) => {
    const named = blocks.filter((block) => (name ? [block.id, block.tool_use_id].includes(name) : block.type === "text"))
    return named.flatMap(textsOf).some((shown) => hasLines(shown, text))
  }
  return own !== undefined && sources.length > 0 && sources.every(isThere)
}

const linesIn = (text) => text.split("\n").map((line) => line.replace(PLACE, "").trim())

// Record the lines of a text that a reader was shown or wrote.
function keepLines(agent, text) {
  const known = lines.get(agent)
  for (const line of known ? linesIn(text) : []) known.add(line)
  if (known?.size > MOST_LINES) lines.delete(agent)
}

// Return true if this may be the output of `readcache recall`: the server has the text that was asked for.
const mayBeRecall = (text) => text.length < LONGEST_REFUSAL && text.includes("readcache")

// Return false if the server cannot omit anything of this text, because the reader has seen too few of its lines.
function mayBeKnown(agent, text) {
  const known = lines.get(agent)
  let run = 0
  const isLong = (line) => (run = !line || known.has(line) ? run + line.length : 0) >= SHORTEST
  return !known || linesIn(text).some(isLong)
}

function blocksOf(content) {
  return typeof content === "string" ? [{ type: "text", text: content }] : content
}

// Return the texts of a block: its text, its result, or the strings that the model wrote in a call.
function textsOf({ type, text, content, input }) {
  if (type === "text") return [text]
  if (type === "tool_use") return Object.values(input).filter((value) => typeof value === "string")
  return typeof content === "string" ? [content] : (content ?? []).map((block) => block.text ?? "")
}

// Return the result in a row as { block, text }; undefined unless it is a single text.
function resultIn(content) {
  const block = content.length === 1 && content[0].type === "tool_result" ? content[0] : undefined
  const texts = block ? textsOf(block) : []
  const isText = typeof block?.content === "string" || block?.content?.[0]?.type === "text"
  return isText && texts.length === 1 ? { block, text: texts[0] } : undefined
}

// Return the row with this text as its result, in the same form (a string or a list) as before.
function withText(row, block, text) {
  const content = typeof block.content === "string" ? text : [{ ...block.content[0], text }]
  return { ...row, message: { ...row.message, content: [{ ...block, content }] } }
}

// Return the newest `last` rows of a conversation. Versions before 2.1.326 return all rows or nothing.
async function newestRows($, last, reader) {
  if (takesLast) {
    try {
      return await $.session.messages({ last, ...reader })
    } catch (error) {
      if (!/\(not last\)/.test(error.message)) throw error
      takesLast = false
    }
  }
  const rows = await $.session.messages(reader)
  return Array.isArray(rows) ? rows.slice(-last) : rows
}

// Return true if these rows contain parallel calls: two calls, or two results, follow each other.
function areTogether(rows) {
  const kinds = rows.map(({ toolUses, toolResults }) => (toolUses.length ? "call" : toolResults?.length ? "result" : ""))
  return kinds.some((kind, at) => kind && kind === kinds[at - 1]) || rows.some(({ toolUses }) => toolUses.length > 1)
}

// Return the call with this id and the calls around it: { call, uses }. The newest rows may lack some of many parallel
// calls, so look in more rows then.
async function callIn($, id, reader) {
  for (const last of ROWS) {
    const rows = await newestRows($, last, reader)
    const uses = Array.isArray(rows) ? rows.flatMap(({ toolUses }) => toolUses) : []
    const call = uses.find(({ tool_use_id }) => tool_use_id === id)
    if (call && (last > ROWS[0] || rows.length < last || !areTogether(rows))) return { call, uses }
  }
  throw new Error("a result came whose call is not in the conversation")
}

// Return the event that reports a result to the server; undefined if the server does not need it. `began`: the
// directory in which a command began, if no other call ran at that time.
async function eventOf($, row, reader, { block, text }) {
  const [found, cwd, session_id] = await Promise.all([
    callIn($, block.tool_use_id, reader),
    $.session.cwd(),
    $.session.id(),
  ])
  const { call, uses } = found
  if (!TOOLS.test(call.tool)) return undefined
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

// Report a result to the server and return { event, answer }. Both are missing if the server does not need the result.
async function judge($, row, reader, result) {
  const came = Date.now()
  const event = await eventOf($, row, reader, result)
  if (!event) return {}
  if (event.isAlone) doneAt.set(row.agentId, Math.max(came, doneAt.get(row.agentId) ?? 0))
  const answer = await ask($, { ...event, hook_event_name: "ToolResult" })
  if (answer && Date.now() - came < PATIENCE) late = 0
  return { event, answer }
}

// Keep a report for the next event: the text that was shown for the server's answer, or the whole result if the server
// gave no answer.
function settle({ event, answer }, shown) {
  if (!event) return
  const { session_id, agent_id, tool_use_id } = event
  const instead = answer && shown === (answer.text ?? event.text) ? {} : { text: shown }
  if (answer) return void unsettled.push({ session_id, agent_id, tool_use_id, ...instead })
  missed.push({ ...event, text: shown })
  if (missed.splice(0, missed.length - MOST_KEPT).length) count(lost, "no server answered")
}

// Return the server's answer; undefined if it is late, or if the last answers were late, so that it is not awaited.
async function answerInTime(judging) {
  const judged = late < MOST_LATE ? await within(PATIENCE, judging) : undefined
  if (!judged) late += 1
  return judged?.answer
}

// Shorten a result if all its markers are proven. Most results contain nothing that the reader has seen: they are
// reported to the server, but its answer is not awaited.
async function shorten($, e, next) {
  const result = resultIn(e.message.content)
  if (!result || server === null) return next(e)
  const reader = e.agentId ? { agentId: e.agentId } : {}
  const judging = judge($, e, reader, result).catch((error) => {
    noteError(error)
    count(lost, textOf(error))
  })
  let row = e
  try {
    const isAwaited = mayBeRecall(result.text) || mayBeKnown(e.agentId, result.text)
    const answer = isAwaited ? await answerInTime(judging) : undefined
    const isShorter = answer?.text !== undefined && !answer.recalled && !cut.has(e.agentId)
    const above = isShorter ? await $.session.messages({ as: "api", ...reader }) : undefined
    const isTrue = isShorter && stand(above, e.agentId, result.block.tool_use_id, answer.sources)
    if (isTrue) row = withText(e, result.block, answer.text)
    if (answer?.recalled) row = withText(e, { ...result.block, is_error: false }, answer.text)
  } catch (error) {
    noteError(error)
  }
  keepLines(e.agentId, result.text)
  const kept = await next(row)
  const shown = resultIn(kept.message?.content ?? [])?.text ?? ""
  void judging.then((judged) => judged && settle(judged, shown))
  return kept
}

// Report to the server everything that is left, because no later event may come.
async function tellRest($, e, next) {
  if (unsettled.length || missed.length || errors.size || lost.size) {
    const telling = $.session.id().then((session_id) => ask($, { session_id, hook_event_name: "Told" }))
    await within(PATIENCE, telling.catch(noteError))
  }
  return next(e)
}

// Record a fork. It begins with its parent's messages above the answer that made it. Claude Code does not record a
// fork's requests, but its parent's requests also show if results are removed.
async function noteFork($, e, next) {
  const parent = e.parentAgentId ? { agentId: e.parentAgentId } : {}
  const since = doneAt.get(e.parentAgentId) ?? 0
  const above = e.fork ? await $.session.messages({ as: "api", ...parent }).catch(noteError) : undefined
  const messages = messagesAbove(e.tool_use_id, above)
  const done = await next(e)
  if (done.agentId && !e.fork && !lines.has(done.agentId)) lines.set(done.agentId, new Set())
  if (!messages || !done.agentId) return done
  if (inherited.size >= MOST_KEPT) inherited.clear()
  inherited.set(done.agentId, { by: e.parentAgentId, since, ...inherited.get(e.parentAgentId), messages })
  const known = { agent_id: done.agentId, parent_id: e.parentAgentId, hook_event_name: "Forked" }
  await $.session.id().then((session_id) => ask($, { session_id, ...known })).catch(noteError)
  return done
}

export function register(on) {
  if (SETTINGS.words.includes("--off")) return
  on("session.start", async ($, e, next) => {
    ended.set(undefined, e.cwd)
    void start($)
    return next(e)
  })
  on("turn.complete", tellRest)
  on("session.end", tellRest)
  on("classic.UserPromptSubmit", async ($, e, next) => {
    if (e.agent_id) return next(e)
    transcript = e.transcript_path
    doneAt.set(undefined, Date.now())
    const before = lines.has(undefined) ? undefined : await newestRows($, 1, {}).catch(noteError)
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
    const event = { agent_id: e.agentId, hook_event_name: "Compacted", kept }
    const telling = $.session.id().then((session_id) => ask($, { session_id, ...event }))
    const answer = await within(COMPACTION_PATIENCE, telling.catch(noteError))
    if (!answer?.text) return done
    keepLines(e.agentId, answer.text)
    return { ...done, messages: [...done.messages, { role: "user", text: answer.text, toolUses: [] }] }
  })
}
