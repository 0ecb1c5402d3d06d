// Code that the plugins of all hosts share: reporting a result, editing the messages of each request, and restoring
// lines after a compaction. The host keeps and shows the real output. Markers appear only in the messages of a request,
// and only if the server has accepted the whole list. Without the server or this file, a request is the same as without
// readcache.
import { createHash, randomUUID } from "node:crypto"

/**
 * A record that the host keeps with a result whose text is different in requests.
 * @typedef {{ session: string, real: string, text: string }} Kept
 *
 * A message of a request, and a result. `results`: the results of its calls, if they have come. `real`: a result's real
 * text. `kept`: the record that the host has kept with the result. `tellings`: returns its reports for the server.
 * `summary`: the name of the compaction, if the message is its summary.
 * @typedef {{ id: string, real: string, kept?: Kept, tellings?: () => Telling[] }} ToolResult
 * @typedef {{ role: string, text: string, summary?: string, results: ToolResult[],
 *   calls: { id: string, tool: string, given: unknown }[] }} Message
 *
 * An answer of the model: the model's name, the answer's own, and the tokens of its request, as the provider counted.
 * @typedef {{ model?: string, answer?: string, prompt_tokens?: number }} Answered
 *
 * A report of a tool's result, as a request of the protocol.
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

const MOST_UNTOLD = 100

class ReadcachePlugin {
  /** @type {Map<string, string | undefined>} */
  #parents = new Map()
  /** @type {Map<string, string>} */
  #batches = new Map() // session -> batch: the model makes all calls of one message before it sees their results
  /** @type {Map<string, string>} */
  #mended = new Map() // session/call/digest of the real text -> the text that the server sent later for it
  #unsent = new Set() // session/call, for replies with markers that were in no request yet
  /** @type {[session: string, ...Telling][]} */
  #untold = [] // reports for the server
  #begun = new Set() // sessions from which this process has seen a list with results

  constructor() {
    const { host, program, mode, options } = SETTINGS
    const advise = mode === "advise" ? ["--advise"] : []
    this.server = new ReadcacheServer([...program, "serve", "--local", ...options, ...advise], { host })
  }

  /**
   * Record a new session. If it has a parent, it is a sub-agent: another reader of the same conversation.
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
   * Report a result. Return the record to keep with it, or undefined if the model must get the real text.
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
        // The reply stays unconfirmed: the messages of the next request show if the host used its text.
        const known = method === "wrote" ? { call_id: call } : { call_id: call, batch, commit: false }
        const { text } = await this.server.ask(method, this.#reader(session), { ...params, ...known })
        if (text !== undefined && text !== real) kept = { session, real: digest(real), text }
      }
    } catch (error) {
      this.missed(session, error) // the real output stays
    }
    if (kept) this.#unsent.add(`${session}/${call}`)
    this.#tellRest()
    return kept
  }

  /**
   * Report that a result was not judged.
   * @param {string | undefined} session
   * @param {unknown} error why
   */
  missed(session, error) {
    this.#tell(session, "missed", { count: 1, why: String(error) })
  }

  /**
   * Report that a request was sent as the host made it.
   * @param {string | undefined} session
   * @param {unknown} error why
   */
  failed(session, error) {
    this.#tell(session, "failed", { why: String(error) })
  }

  /** @param {string | undefined} session @param {string} method @param {Record<string, unknown>} params */
  #tell(session, method, params) {
    if (this.#untold.length < MOST_UNTOLD) this.#untold.push([session ?? "unknown", method, params])
    this.#tellRest()
  }

  #tellRest() {
    for (const [session, method, params] of this.#untold.splice(0)) {
      if (!this.server.tell(method, this.#reader(session), params)) this.#untold.push([session, method, params])
    }
  }

  /**
   * Return the changes for the next request. `section`: the text to append to its newest summary. `texts`: one for each
   * result, in order, or undefined for the real text. Return undefined if the real list must be sent, because a marker
   * is only sent if the server has checked it.
   * @param {string} session
   * @param {Message[]} messages
   * @param {Answered} answered the newest answer in the messages
   * @returns {Promise<{ section: string, texts: (string | undefined)[] } | undefined>}
   */
  async request(session, messages, answered) {
    this.#batches.set(session, randomUUID())
    // A record that was copied into a fork belongs to another session. A result that another plugin changed no longer
    // matches its record.
    const shortened = (/** @type {ToolResult} */ { id, real, kept }) => {
      const isOurs = kept?.session === session && kept.real === digest(real)
      return this.#mended.get(`${session}/${id}/${digest(real)}`) ?? (isOurs ? kept.text : undefined)
    }
    const unsent = messages.flatMap(({ results }) => results.filter(({ id }) => this.#unsent.delete(`${session}/${id}`)))
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
      const sent = await this.server.ask("mend", this.#reader(session), { messages: chat, ...answered })
      const results = messages.flatMap((message) => message.results)
      const before = new Map(results.map((result) => [result.id, shortened(result) ?? result.real]))
      const reals = new Map(results.map(({ id, real }) => [id, digest(real)]))
      for (const { role, tool_call_id: id, content } of sent.messages ?? []) {
        if (role === "tool" && content !== before.get(id)) this.#mended.set(`${session}/${id}/${reals.get(id)}`, content)
      }
      return { section, texts: results.map(shortened) }
    } catch (error) {
      // The server may believe that the list was sent. So from now on, always send the real texts of these results.
      for (const { id, real } of unsent) {
        this.#mended.set(`${session}/${id}/${digest(real)}`, real)
        this.#tell(session, "settle", { call_id: id, text: real })
      }
      this.failed(session, error)
      return undefined
    }
  }

  /**
   * Report the results with which a fork begins. The server knows them as results of another session, or not at all.
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
            const known = method === "wrote" ? { call_id } : { call_id, batch, commit: false }
            await this.server.ask(method, reader, { ...params, ...known }).catch(() => {}) // others may still help
          }
        }
      }
    }
    this.#begun.add(session)
  }

  /**
   * Return the restored section of the last compaction: the same text in each request. Empty if there is none.
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
