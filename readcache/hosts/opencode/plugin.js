// readcache in opencode and its forks: omit from each request the lines that the model can still see, and say where
// they are.
import { isAbsolute, join } from "node:path"

const COMPARED = ["grep", "glob", "list"] // tools whose results are compared as a whole

/**
 * Return the reports of a tool's result for the server. Empty if there is nothing to report.
 * @param {string} directory
 * @param {string} tool
 * @param {any} args
 * @param {{ output: string, metadata?: any }} result
 * @returns {Telling[]}
 */
function tellings(directory, tool, args, { output, metadata }) {
  const path = (/** @type {string} */ name) => (isAbsolute(name) ? name : join(directory, name))
  if (tool === "bash") {
    const exit_code = metadata.exit ?? null // null: killed at its timeout, or by the user
    const complete = exit_code !== null && !metadata.truncated
    const frame = output === "(no output)" ? { head: 1 } : null
    return [["observe", { command: args.command, output, exit_code, cwd: path(args.workdir ?? "."), complete, frame }]]
  }
  const shown = tool === "read" ? (metadata.display ?? displayOf(output, metadata)) : undefined
  if (shown?.type === "file") {
    const [head, tail] = aroundLines(output)
    const frame = { head: linesOf(head), tail: linesOf(tail) }
    const lines = { start: shown.lineStart, end: shown.truncated ? shown.lineEnd : null, numbered: ": " }
    return [["observe_read", { path: shown.path, output, ...lines, frame }]]
  }
  if (tool === "write") return [["wrote", { path: path(args.filePath), content: args.content }]]
  if (tool === "edit") return [["wrote", { path: path(args.filePath) }]]
  if (tool === "apply_patch") {
    /** @type {{ filePath?: string, movePath?: string }[]} */
    const files = metadata.files
    const changed = files.flatMap(({ filePath, movePath }) => [filePath, movePath]).filter((name) => name !== undefined)
    return changed.map((name) => ["wrote", { path: path(name) }])
  }
  return COMPARED.includes(tool) ? [["observe_tool", { name: tool, arguments: args, output }]] : []
}

/**
 * Return the text before and after the lines that a read shows. These lines have numbers, so none looks like a tag.
 * @param {string} output
 */
const aroundLines = (output) => [
  output.slice(0, output.indexOf("<content>\n") + 10),
  output.slice(output.lastIndexOf("\n\n(", output.indexOf("\n</content>"))),
]

/**
 * Return the value of `metadata.display`, which opencode 1.15 does not set. Return undefined unless a file was read.
 * @param {string} output
 * @param {{ truncated?: boolean }} metadata
 */
function displayOf(output, { truncated }) {
  const found = /^<path>(.*)<\/path>\n<type>file<\/type>\n<content>\n(\d+): /.exec(output)
  if (!found) return undefined
  const [head, tail] = aroundLines(output)
  const lineStart = Number(found[2])
  const lineEnd = lineStart + linesOf(output.slice(head.length, output.length - tail.length))
  return { type: "file", path: found[1], lineStart, lineEnd, truncated }
}

/** @typedef {{ info: import("@opencode-ai/sdk").Message, parts: import("@opencode-ai/sdk").Part[] }} Listed */
/** @typedef {import("@opencode-ai/sdk").ToolPart} ToolPart */
/** @typedef {import("@opencode-ai/sdk").TextPart} TextPart */

/** @param {string} directory @param {ToolPart} part @returns {ToolResult} */
function resultOf(directory, { tool, callID, state }) {
  if (state.status !== "completed") return { id: callID, real: state.status === "error" ? state.error : "" }
  if (state.time.compacted) return { id: callID, real: "" }
  const kept = /** @type {Kept | undefined} */ (state.metadata?.readcache)
  return { id: callID, real: state.output, kept, tellings: () => tellings(directory, tool, state.input, state) }
}

/** @param {Listed["parts"]} parts @returns {TextPart[]} */
const textsOf = (parts) => parts.filter((part) => part.type === "text").filter((part) => !part.ignored)

/** @param {Listed["parts"]} parts @returns {ToolPart[]} */
const callsOf = (parts) =>
  parts.filter((part) => part.type === "tool").filter(({ state }) => ["completed", "error"].includes(state.status))

/** @param {string} directory @param {Listed} listed @returns {Message} */
function asMessage(directory, { info, parts }) {
  const isSummary = info.role === "assistant" && info.summary === true
  return {
    role: isSummary ? "user" : info.role, // the agent did not write it
    text: textsOf(parts).map((part) => part.text).join("\n"),
    summary: isSummary && textsOf(parts).length ? info.id : undefined,
    calls: callsOf(parts).map(({ callID, tool, state }) => ({ id: callID, tool, given: state.input })),
    results: callsOf(parts).map((part) => resultOf(directory, part)),
  }
}

/** @param {Listed[]} messages @returns {Answered} */
function newestAnswer(messages) {
  const isAnswer = (/** @type {Listed} */ { info }) => info.role === "assistant" && !info.summary && info.tokens?.output > 0
  const info = messages.findLast(isAnswer)?.info
  if (info?.role !== "assistant") return {}
  const { input, cache } = info.tokens
  return { model: info.modelID, answer: info.id, prompt_tokens: input + cache.read + cache.write }
}

// Global, because the user and the project may both have this plugin, and only one copy may serve a client.
/** @type {WeakSet<object>} */
const served = (/** @type {any} */ (globalThis)[Symbol.for("readcache")] ??= new WeakSet())

/** @type {import("@opencode-ai/plugin").Plugin} */
export const Readcache = async ({ client, directory }) => {
  if (isOff() || served.has(client)) return {}
  served.add(client)
  const readcache = new ReadcachePlugin()
  const compacting = new Set() // sessions whose next message list is for the summary
  return {
    event: async ({ event }) => {
      if (event.type === "session.created") readcache.born(event.properties.info.id, event.properties.info.parentID)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, result) => {
      try {
        const kept = await readcache.result(sessionID, callID, result.output, tellings(directory, tool, args, result))
        if (kept) result.metadata = { ...result.metadata, readcache: kept }
      } catch (error) {
        readcache.missed(sessionID, error) // the real output stays
      }
    },
    "experimental.session.compacting": async ({ sessionID }) => void compacting.add(sessionID),
    "experimental.chat.messages.transform": async (_, { messages }) => {
      let session
      try {
        session = messages.at(-1)?.info.sessionID
        if (!session || compacting.delete(session)) return // the summary is made from the real texts
        const list = messages.map((listed) => asMessage(directory, listed))
        const sent = await readcache.request(session, list, newestAnswer(messages))
        if (!sent) return
        const at = list.findLastIndex(({ summary }) => summary !== undefined)
        const last = at < 0 ? undefined : textsOf(messages[at].parts).at(-1)
        if (last && sent.section) last.text += `\n\n${sent.section}`
        for (const [k, { state }] of messages.flatMap(({ parts }) => callsOf(parts)).entries()) {
          if (state.status === "completed") state.output = sent.texts[k] ?? state.output
        }
      } catch (error) {
        readcache.failed(session, error) // the real list is sent
      }
    },
    dispose: async () => readcache.server.end(),
  }
}
