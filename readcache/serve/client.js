// A client of `readcache serve` for Node and Bun. It is put in front of plugins, which hosts load from one file.
import { spawn } from "node:child_process"

// The server is started when it is first asked, and at most `mostStarts` times. `ask` gives the result of a method, or
// rejects: then the real output is what the model is to see. It never waits longer than `deadline` milliseconds; a server
// that lets it wait so long, or that says what is not an answer, is ended.
class ReadcacheServer {
  #child
  #starts = 0
  #last = 0
  #waiting = new Map()
  constructor([program, ...words], { deadline = 5000, mostStarts = 3, host = "" } = {}) {
    Object.assign(this, { program, words, deadline, mostStarts, host })
  }
  #start() {
    if (++this.#starts > this.mostStarts) throw new Error("readcache serve has ended too often")
    const env = this.host ? { ...process.env, READCACHE_HOST: this.host } : process.env
    const child = spawn(this.program, this.words, { stdio: ["pipe", "pipe", "ignore"], env })
    const gone = () => {
      if (this.#child !== child) return
      this.#child = undefined
      for (const { reject } of this.#waiting.values()) reject(new Error("readcache serve has ended"))
    }
    child.on("error", gone).on("exit", gone)
    child.stdin.on("error", gone)
    let rest = ""
    child.stdout.setEncoding("utf8").on("data", (text) => {
      const lines = (rest + text).split("\n")
      rest = lines.pop()
      for (const line of lines) this.#hear(line)
    })
    return (this.#child = child)
  }
  #hear(line) {
    try {
      const { id, result, error } = JSON.parse(line)
      if (error) this.#waiting.get(id)?.reject(new Error(error.message))
      else this.#waiting.get(id)?.resolve(result)
    } catch {
      this.#child?.kill("SIGKILL")
    }
  }
  async ask(method, reader, params) {
    const child = this.#child ?? this.#start()
    const id = ++this.#last
    let timer
    const answer = new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      timer = setTimeout(() => {
        reject(new Error("readcache serve is too slow"))
        child.kill("SIGKILL")
      }, this.deadline)
      child.stdin.write(JSON.stringify({ id, method, ...reader, params }) + "\n")
    })
    return answer.finally(() => (clearTimeout(timer), this.#waiting.delete(id)))
  }
  end() {
    this.mostStarts = 0
    this.#child?.kill()
  }
}
