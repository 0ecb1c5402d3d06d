// readcache in pi: omit from each request the lines that the model can still see, and say where they are.
import { homedir } from "node:os"
import { resolve } from "node:path"

const COMPARED = ["grep", "find", "ls"] // tools whose results are compared as a whole
const CUT = /\n\n\[Showing [^\n]* Full output: [^\n]*\]$/ // pi truncated a command's output; a file has the rest
const ENDED = /\n?\n\n(Command [^\n]*)$/ // pi's note below the output of a failed command
const MORE = /\n\n\[(Showing lines|\d+ more lines in file)[^\n]*\]$/ // pi's note below a part of a file

/** @typedef {import("@earendil-works/pi-coding-agent").ToolResultEvent} ToolResultEvent */
/** @typedef {import("@earendil-works/pi-coding-agent").ContextEvent["messages"][number]} PiMessage */

/**
 * Return the reports of a tool's result for the server. Empty if there is nothing to report.
 * @param {string} cwd
 * @param {Pick<ToolResultEvent, "toolName" | "details" | "isError"> & { input: Record<string, any> }} event
 * @param {string | undefined} output its text, if it is one
 * @returns {Telling[]}
 */
function tellings(cwd, { toolName, input, details, isError }, output) {
  const path = (/** @type {string} */ name) => resolve(cwd, name.replace(/^@/, "").replace(/^~(?=\/|$)/, homedir()))
  if (toolName === "edit" || (toolName === "write" && isError)) return [["wrote", { path: path(input.path) }]]
  if (toolName === "write") return [["wrote", { path: path(input.path), content: input.content }]]
  if (output === undefined) return []
  if (toolName === "bash") {
    const ended = isError ? ENDED.exec(output) : null
    const code = /^Command exited with code (\d+)$/.exec(ended?.[1] ?? "")
    const exit_code = isError ? (code ? Number(code[1]) : null) : 0 // null: killed at its timeout, or by the user
    const body = ended ? output.slice(0, ended.index) : output
    const complete = exit_code !== null && !CUT.test(body)
    const frame = { head: body === "(no output)" ? 1 : 0, tail: ended ? linesOf(ended[0]) : 0 }
    return [["observe", { command: input.command, output, exit_code, cwd, complete, frame }]]
  }
  if (isError) return []
  if (toolName === "read") {
    const shown = /** @type {import("@earendil-works/pi-coding-agent").ReadToolDetails | undefined} */ (details)?.truncation
    if (shown?.firstLineExceedsLimit) return []
    const start = Math.max(1, input.offset ?? 1)
    const more = MORE.exec(output)
    const end = shown?.truncated ? start + shown.outputLines - 1 : more && input.limit ? start + input.limit - 1 : null
    const frame = { head: 0, tail: end !== null && more ? linesOf(more[0]) : 0 }
    return [["observe_read", { path: path(input.path), output, start, end, numbered: false, frame }]]
  }
  return COMPARED.includes(toolName) ? [["observe_tool", { name: toolName, arguments: input, output }]] : []
}

/**
 * Return the text of a content that is a single text, otherwise undefined.
 * @param {unknown} content
 * @returns {string | undefined}
 */
function oneText(content) {
  if (typeof content === "string") return content
  const [block, ...others] = /** @type {{ type: string, text?: string }[]} */ (content ?? [])
  return block?.type === "text" && !others.length ? block.text : undefined
}

/** @param {unknown} content @returns {string} */
const textOf = (content) =>
  Array.isArray(content) ? content.map((block) => block.text ?? "").join("\n") : String(content ?? "")

/** @param {PiMessage} message @returns {Message[]} */
function asMessages(message) {
  const [calls, results] = [/** @type {Message["calls"]} */ ([]), /** @type {ToolResult[]} */ ([])]
  if (message.role === "toolResult") return []
  if (message.role === "assistant") {
    for (const block of message.content) {
      if (block.type === "toolCall") calls.push({ id: block.id, tool: block.name, given: block.arguments })
    }
    return [{ role: "assistant", text: textOf(message.content), calls, results }]
  }
  const summary = message.role === "compactionSummary" ? String(message.timestamp) : undefined
  const text = "summary" in message ? message.summary : textOf("content" in message ? message.content : "")
  return [{ role: "user", text, summary, calls, results }]
}

/** @param {string} cwd @param {PiMessage[]} messages @returns {Message[]} */
function asList(cwd, messages) {
  /** @type {Message[]} */
  const list = []
  for (const message of messages) {
    list.push(...asMessages(message))
    if (message.role !== "toolResult") continue
    const { toolCallId: id, toolName, details, isError, content } = message
    if (!list.length) list.push({ role: "user", text: "", calls: [], results: [] })
    const { calls, results } = list[list.length - 1]
    const input = /** @type {Record<string, any> | undefined} */ (calls.find((call) => call.id === id)?.given)
    const told = input && (() => tellings(cwd, { toolName, input, details, isError }, oneText(content)))
    results.push({ id, real: textOf(content), kept: /** @type {any} */ (details)?.readcache, tellings: told })
  }
  return list
}

/** @param {PiMessage[]} messages @returns {Answered} */
function newestAnswer(messages) {
  const message = messages.findLast(({ role }) => role === "assistant")
  if (message?.role !== "assistant" || !message.usage) return {} // another extension may have made it
  const { model, timestamp, usage } = message
  return { model, answer: String(timestamp), prompt_tokens: usage.input + usage.cacheRead + usage.cacheWrite }
}

// Global, because the user and the project may both have this extension, and only one copy may serve a session.
/** @type {Map<string, object>} */
const owners = (/** @type {any} */ (globalThis)[Symbol.for("readcache.pi")] ??= new Map())

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function (pi) {
  if (isOff()) return
  const readcache = new ReadcachePlugin()
  /**
   * Return the session, unless another copy of this extension serves it.
   * @param {import("@earendil-works/pi-coding-agent").ExtensionContext} ctx
   */
  const sessionOf = (ctx) => {
    const session = ctx.sessionManager.getSessionId()
    if (!owners.has(session)) owners.set(session, readcache)
    return owners.get(session) === readcache ? session : undefined
  }
  pi.on("tool_result", async (event, ctx) => {
    let session
    try {
      session = sessionOf(ctx)
      if (!session) return
      const isInner = "parentToolCallId" in event && event.parentToolCallId !== undefined // the model does not see it
      const output = isInner ? undefined : oneText(event.content)
      const told = tellings(ctx.cwd, event, output)
      const kept = await readcache.result(session, event.toolCallId, output ?? "", told)
      if (kept) return { details: { .../** @type {object} */ (event.details), readcache: kept } }
    } catch (error) {
      readcache.missed(session, error) // the real output stays
    }
  })
  pi.on("context", async ({ messages }, ctx) => {
    let session
    try {
      session = sessionOf(ctx)
      const sent = session && (await readcache.request(session, asList(ctx.cwd, messages), newestAnswer(messages)))
      if (!sent) return
      const texts = sent.texts.values()
      const newest = messages.findLast(({ role }) => role === "compactionSummary")
      return {
        messages: messages.map((message) => {
          if (message === newest && "summary" in message && sent.section)
            return { ...message, summary: `${message.summary}\n\n${sent.section}` }
          const text = message.role === "toolResult" ? texts.next().value : undefined
          return text === undefined ? message : { ...message, content: [{ type: "text", text }] }
        }),
      }
    } catch (error) {
      readcache.failed(session, error) // the real list is sent
    }
  })
  pi.on("session_shutdown", async () => {
    for (const [session, owner] of owners) if (owner === readcache) owners.delete(session)
    readcache.server.end()
  })
}
