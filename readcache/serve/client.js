// A client of `readcache serve` for Node and Bun. It comes before the code of a plugin, because hosts load one file.
import { spawn } from "node:child_process"

/** @typedef {{ conversation: string, agent?: string }} ReadcacheReader */

/**
 * @param {string} method
 * @param {ReadcacheReader} reader
 * @param {Record<string, unknown>} params
 * @param {number} [id] none for a notification
 */
const requestLine = (method, reader, params, id) =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...reader, ...params } }) + "\n"

// The server is started when it is first asked, and at most `mostStarts` times. `ask` gives the result of a method, or
// rejects: then show the model the real output. It waits at most `deadline` milliseconds. A server that misses the deadline
// is not asked again until it answers; after `aside` milliseconds it is ended, and another one started. A server that
// prints anything but answers is ended at once.
class ReadcacheServer {
  /** @type {import("node:child_process").ChildProcessByStdio<import("node:stream").Writable, import("node:stream").Readable, null> | undefined} */
  #child
  #starts = 0
  #last = 0
  #lateSince = 0
  /** @type {Map<unknown, { resolve: (result: any) => void, reject: (error: Error) => void }>} */
  #waiting = new Map()

  /**
   * @param {string[]} command the command line that starts the server
   * @param {{ deadline?: number, aside?: number, mostStarts?: number, host?: string }} [options]
   */
  constructor([program, ...words], { deadline = 2000, aside = 30_000, mostStarts = 3, host = "" } = {}) {
    this.program = program
    this.words = words
    this.deadline = deadline
    this.aside = aside
    this.mostStarts = mostStarts
    this.host = host
  }

  #start() {
    if (++this.#starts > this.mostStarts) throw new Error("readcache serve has ended too often")
    const env = this.host ? { ...process.env, READCACHE_HOST: this.host } : process.env
    const child = spawn(this.program, this.words, { stdio: ["pipe", "pipe", "ignore"], env })
    const gone = () => this.#gone(child)
    child.on("error", gone).on("exit", gone)
    child.stdin.on("error", gone)
    let rest = ""
    child.stdout.setEncoding("utf8").on("data", (text) => {
      const lines = (rest + text).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) if (this.#child === child) this.#hear(line)
    })
    for (const each of [child, child.stdin, child.stdout]) if ("unref" in each) each.unref() // so the host can exit
    return (this.#child = child)
  }

  /** @param {unknown} child */
  #gone(child) {
    if (this.#child !== child) return
    this.#child?.kill("SIGKILL")
    this.#child = undefined
    this.#lateSince = 0
    for (const { reject } of this.#waiting.values()) reject(new Error("readcache serve has ended"))
  }

  /** @param {string} line */
  #hear(line) {
    try {
      const { id, result, error } = JSON.parse(line)
      if (error === undefined && result === undefined) throw new Error("no answer")
      this.#lateSince = 0
      if (error) this.#waiting.get(id)?.reject(new Error(error.message))
      else this.#waiting.get(id)?.resolve(result)
    } catch {
      this.#gone(this.#child)
    }
  }

  /**
   * @param {string} method
   * @param {ReadcacheReader} reader
   * @param {Record<string, unknown>} params
   * @returns {Promise<any>}
   */
  async ask(method, reader, params) {
    if (this.#lateSince && Date.now() - this.#lateSince >= this.aside) this.#gone(this.#child)
    if (this.#lateSince) throw new Error("readcache serve has yet to answer")
    const child = this.#child ?? this.#start()
    const id = ++this.#last
    /** @type {NodeJS.Timeout | undefined} */
    let timer
    const answer = new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      timer = setTimeout(() => {
        if (this.#child === child) this.#lateSince ||= Date.now()
        reject(new Error("readcache serve is too slow"))
      }, this.deadline)
      child.stdin.write(requestLine(method, reader, params, id))
    })
    return answer.finally(() => (clearTimeout(timer), this.#waiting.delete(id)))
  }

  /**
   * Sends a notification, after the requests before it. False if no server runs: it is started by `ask`.
   * @param {string} method
   * @param {ReadcacheReader} reader
   * @param {Record<string, unknown>} params
   */
  tell(method, reader, params) {
    return this.#child?.stdin.write(requestLine(method, reader, params)) !== undefined
  }

  end() {
    this.mostStarts = 0
    const child = this.#child
    child?.stdin.end() // the server exits when it has read everything
    setTimeout(() => child?.kill("SIGKILL"), this.deadline).unref()
  }
}
