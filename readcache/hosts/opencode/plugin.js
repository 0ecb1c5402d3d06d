// readcache in opencode: lines that the model can still see are left out of the requests, and say where they stand.
// What opencode stores and shows stays the real output: markers are put into the messages of each request alone, once
// the server has agreed to all of them. Without the server, or this file, a request is as it would be without readcache.
import { createHash, randomUUID } from "node:crypto"
import { isAbsolute, join } from "node:path"

const SETTINGS = { program: ["readcache"], mode: "on", options: [] }
const COMPARED = ["grep", "glob", "list"] // tools whose results are compared as a whole

// What a tool's result is, in the words of the protocol: [method, params] each. None: it is no business of ours.
function tellings(directory, tool, args, { output, metadata }) {
  const path = (name) => (isAbsolute(name) ? name : join(directory, name))
  if (tool === "bash") {
    const exit_code = metadata.exit ?? null // null: killed at its timeout, or by the user
    const complete = exit_code !== null && !metadata.truncated
    const frame = output === "(no output)" ? { head: 1 } : null
    return [["observe", { command: args.command, output, exit_code, cwd: path(args.workdir ?? "."), complete, frame }]]
  }
  const shown = metadata.display
  if (tool === "read" && shown?.type === "file") {
    const head = output.slice(0, output.indexOf("<content>\n") + 10)
    const tail = output.slice(output.lastIndexOf("\n\n(", output.indexOf("\n</content>")))
    const frame = { head: head.split("\n").length - 1, tail: tail.split("\n").length - 1 }
    const lines = { start: shown.lineStart, end: shown.truncated ? shown.lineEnd : null, numbered: true }
    return [["observe_read", { path: shown.path, output, ...lines, frame }]]
  }
  if (tool === "write") return [["wrote", { path: path(args.filePath), content: args.content }]]
  if (tool === "edit") return [["wrote", { path: path(args.filePath) }]]
  if (tool === "apply_patch") {
    const changed = metadata.files.flatMap(({ filePath, movePath }) => [filePath, movePath]).filter(Boolean)
    return changed.map((name) => ["wrote", { path: path(name) }])
  }
  return COMPARED.includes(tool) ? [["observe_tool", { name: tool, arguments: args, output }]] : []
}

// The messages of a request as the chat API has them.
function asChat(messages, textOf) {
  return messages.flatMap(({ info, parts }) => {
    const text = parts.filter((part) => part.type === "text" && !part.ignored).map((part) => part.text)
    const calls = parts.filter((part) => part.type === "tool" && ["completed", "error"].includes(part.state.status))
    const tool_calls = calls.map(({ callID, tool, state }) => {
      return { id: callID, type: "function", function: { name: tool, arguments: JSON.stringify(state.input) } }
    })
    const results = calls.map((part) => ({ role: "tool", tool_call_id: part.callID, content: textOf(part) }))
    const role = info.summary === true ? "user" : info.role // a summary is none of the agent's own words
    return [{ role, content: text.join("\n"), ...(calls.length ? { tool_calls } : {}) }, ...results]
  })
}

const digest = (text) => createHash("sha256").update(text).digest("hex")
const isOff = () => SETTINGS.mode === "off" || ["off", "0", "false", "no"].includes(process.env.READCACHE?.trim().toLowerCase())

const served = (globalThis[Symbol.for("readcache")] ??= new WeakSet()) // user and project may both have this plugin

export const Readcache = async ({ client, directory }) => {
  if (isOff() || served.has(client)) return {}
  served.add(client)
  const advise = SETTINGS.mode === "advise" ? ["--advise"] : []
  const server = new ReadcacheServer([...SETTINGS.program, "serve", "--local", ...SETTINGS.options, ...advise], { host: "opencode" })
  const [parents, readers, batches] = [new Map(), new Map(), new Map()] // by session
  const compacting = new Set() // sessions whose next messages are those to be summarised
  const mended = new Map() // session/call -> what the server said later is to stand there

  // A sub-agent is another reader of the conversation that it serves.
  const readerOf = (session) => {
    let root = session
    while (parents.get(root)) root = parents.get(root)
    if (!readers.has(session)) readers.set(session, { conversation: root, agent: root === session ? "main" : session })
    return readers.get(session)
  }
  // The text for the model; undefined where it is the real one. What was copied into a fork is not the fork's.
  const shortened = ({ type, callID, sessionID, state }) => {
    if (type !== "tool" || state.status !== "completed" || state.time.compacted) return undefined
    const ours = state.metadata?.readcache
    const isOurs = ours?.session === sessionID && ours.real === digest(state.output)
    return mended.get(`${sessionID}/${callID}`) ?? (isOurs ? ours.text : undefined)
  }
  // Puts what the conversation lost behind the summary of the last compaction: the same text in each request.
  const putBack = async (session, messages) => {
    const summary = messages.findLast(({ info }) => info.role === "assistant" && info.summary === true)
    const part = summary?.parts.findLast((part) => part.type === "text" && !part.ignored)
    if (!part) return
    const keep = messages.flatMap(({ parts }) => parts.filter(({ type }) => type === "tool").map(({ callID }) => callID))
    const { section } = await server.ask("restored_section", readerOf(session), { compaction: summary.info.id, keep })
    if (section) part.text += `\n\n${section}`
  }
  const real = ({ state }) => (state.status === "error" ? state.error : state.time.compacted ? "" : state.output)

  return {
    event: async ({ event }) => {
      if (event.type === "session.created") parents.set(event.properties.info.id, event.properties.info.parentID)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, result) => {
      try {
        const batch = batches.get(sessionID) // calls of one message: none of them was seen by the model that made another
        for (const [method, params] of tellings(directory, tool, args, result)) {
          const known = method === "wrote" ? { call_id: callID } : { call_id: callID, batch }
          const { text } = await server.ask(method, readerOf(sessionID), { ...params, ...known })
          if (text === undefined || text === result.output) continue
          result.metadata = { ...result.metadata, readcache: { session: sessionID, real: digest(result.output), text } }
        }
      } catch {} // the real output stays
    },
    "experimental.session.compacting": async ({ sessionID }) => void compacting.add(sessionID),
    "experimental.chat.messages.transform": async (_, { messages }) => {
      try {
        const session = messages.at(-1)?.info.sessionID
        if (!session || compacting.delete(session)) return // a part of the conversation: its summary is of real texts
        batches.set(session, randomUUID())
        await putBack(session, messages)
        const chat = asChat(messages, (part) => shortened(part) ?? real(part))
        const sent = await server.ask("mend", readerOf(session), { messages: chat })
        const changed = (sent.messages ?? []).filter(({ role, content }, at) => role === "tool" && content !== chat[at].content)
        for (const { tool_call_id, content } of changed) mended.set(`${session}/${tool_call_id}`, content)
        for (const part of messages.flatMap(({ parts }) => parts)) {
          const text = shortened(part)
          if (text !== undefined) part.state.output = text
        }
      } catch {} // no marker is sent that the server has not seen to
    },
    dispose: async () => server.end(),
  }
}
