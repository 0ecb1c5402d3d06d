// What the plugins of all hosts share: a result, the list before each request, and what a compaction took away. The host
// keeps and shows the real output. Markers stand only in the messages of a request, and only if the server has accepted the
// whole list. Without the server, or this file, a request is as it would be without readcache.
import { createHash, randomUUID } from "node:crypto"

/**
 * What is kept with a result whose text in requests is another one.
 * @typedef {{ session: string, real: string, text: string }} Kept
 *
 * A message of a request. `results`: those of its calls that have come, with their real texts; `kept`: what the host has
 * kept with it; `tellings`: what to tell the server of it; `summary`: its name, if it is the summary that a compaction left.
 * @typedef {{ id: string, real: string, kept?: Kept, tellings?: () => Telling[] }} ToolResult
 * @typedef {{ role: string, text: string, summary?: string, results: ToolResult[],
 *   calls: { id: string, tool: string, given: unknown }[] }} Message
 *
 * What a tool's result is, in the words of the protocol.
 * @typedef {[method: string, params: Record<string, unknown>]} Telling
 */

/** @typedef {{ host: string, program: string[], mode: string, options: string[] }} Settings */
const SETTINGS = /** @type {Settings} */ ({ host: "", program: ["readcache"], mode: "on", options: [] })

const isOff = () =>
  SETTINGS.mode === "off" || ["off", "0", "false", "no"].includes(process.env.READCACHE?.trim().toLowerCase() ?? "")

/** @param {string} text */
const digest = (text) => createHash("sha256").update(text).digest("hex")

/** @param {string} text */
const linesOf = (text) => text.split("\n").length - 1

class ReadcachePlugin {
  /** @type {Map<string, string | undefined>} */
  #parents = new Map()
  /** @type {Map<string, string>} */
  #batches = new Map() // calls of one message: the model made each of them before it saw the results of the others
  /** @type {Map<string, string>} */
  #mended = new Map() // session/call/real text -> what the server said later is to stand there
  #begun = new Set() // sessions of which this process has seen a list with results

  constructor() {
    const { host, program, mode, options } = SETTINGS
    const advise = mode === "advise" ? ["--advise"] : []
    this.server = new ReadcacheServer([...program, "serve", "--local", ...options, ...advise], { host })
  }

  /**
   * A sub-agent is another reader of the conversation that it serves.
   * @param {string} session
   * @param {string | undefined} parent
   */
  born(session, parent) {
    this.#parents.set(session, parent)
  }

  /** @param {string} session */
  #reader(session) {
    let root = session
    for (let above = this.#parents.get(root); above; above = this.#parents.get(root)) root = above
    return { conversation: root, agent: root === session ? "main" : session }
  }

  /**
   * What is to be kept with a result; undefined where the real text is the one for the model.
   * @param {string} session
   * @param {string} call
   * @param {string} real
   * @param {Telling[]} tellings
   * @returns {Promise<Kept | undefined>}
   */
  async result(session, call, real, tellings) {
    let kept
    try {
      const batch = this.#batches.get(session)
      for (const [method, params] of tellings) {
        const known = method === "wrote" ? { call_id: call } : { call_id: call, batch }
        const { text } = await this.server.ask(method, this.#reader(session), { ...params, ...known })
        if (text !== undefined && text !== real) kept = { session, real: digest(real), text }
      }
    } catch {} // the real output stays
    return kept
  }

  /**
   * What the next request is to hold: `section` at the end of its newest summary, and `texts`, one for each result (in
   * their order; undefined for the real one). Undefined where the real list is to be sent: no marker is sent that the server
   * has not checked.
   * @param {string} session
   * @param {Message[]} messages
   * @returns {Promise<{ section: string, texts: (string | undefined)[] } | undefined>}
   */
  async request(session, messages) {
    this.#batches.set(session, randomUUID())
    // What was copied into a fork is not the fork's, and what another plugin changed is not ours.
    const shortened = (/** @type {ToolResult} */ { id, real, kept }) => {
      const isOurs = kept?.session === session && kept.real === digest(real)
      return this.#mended.get(`${session}/${id}/${digest(real)}`) ?? (isOurs ? kept.text : undefined)
    }
    try {
      await this.#inherit(session, messages)
      const section = await this.#lost(session, messages)
      const summary = section && messages.findLast((message) => message.summary !== undefined)
      const chat = messages.flatMap((message) => {
        const results = message.results.map((result) => ({
          role: "tool", tool_call_id: result.id, content: shortened(result) ?? result.real,
        }))
        const tool_calls = message.calls.map(({ id, tool, given }) => ({
          id, type: "function", function: { name: tool, arguments: JSON.stringify(given ?? {}) },
        }))
        const content = message === summary ? `${message.text}\n\n${section}` : message.text
        return [{ role: message.role, content, ...(tool_calls.length ? { tool_calls } : {}) }, ...results]
      })
      const sent = await this.server.ask("mend", this.#reader(session), { messages: chat })
      const results = messages.flatMap((message) => message.results)
      const before = new Map(results.map((result) => [result.id, shortened(result) ?? result.real]))
      const reals = new Map(results.map(({ id, real }) => [id, digest(real)]))
      for (const { role, tool_call_id: id, content } of sent.messages ?? []) {
        if (role === "tool" && content !== before.get(id)) this.#mended.set(`${session}/${id}/${reals.get(id)}`, content)
      }
      return { section, texts: results.map(shortened) }
    } catch {
      return undefined
    }
  }

  /**
   * A fork begins with results that the server was told of as another session's, if at all: it is told of them once more.
   * @param {string} session
   * @param {Message[]} messages
   */
  async #inherit(session, messages) {
    if (this.#begun.has(session) || !messages.some(({ results }) => results.length)) return
    const reader = this.#reader(session)
    if (!Object.keys(await this.server.ask("stats", reader, {})).length) {
      for (const { results } of messages) {
        const batch = randomUUID()
        for (const { id: call_id, tellings } of results) {
          for (const [method, params] of tellings?.() ?? []) {
            const known = method === "wrote" ? { call_id } : { call_id, batch }
            await this.server.ask(method, reader, { ...params, ...known }).catch(() => {}) // the others may help
          }
        }
      }
    }
    this.#begun.add(session)
  }

  /**
   * What the last compaction took away: the same text in each request.
   * @param {string} session
   * @param {Message[]} messages
   * @returns {Promise<string>}
   */
  async #lost(session, messages) {
    const compaction = messages.findLast(({ summary }) => summary !== undefined)?.summary
    if (compaction === undefined) return ""
    const keep = messages.flatMap(({ calls }) => calls.map(({ id }) => id))
    return (await this.server.ask("restored_section", this.#reader(session), { compaction, keep })).section ?? ""
  }
}
