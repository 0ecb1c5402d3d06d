// Drives client.js, which stands in front of it: see readcache/testing/clients.py.
import { createInterface } from "node:readline"

const [deadline, ...command] = process.argv.slice(2)
const server = new ReadcacheServer(command, { deadline: Number(deadline) })
for await (const line of createInterface({ input: process.stdin })) {
  const { method, params: { conversation, agent, ...params } } = JSON.parse(line)
  const said = await server.ask(method, { conversation, agent }, params).then((result) => ({ result }), (error) => ({ error: String(error) }))
  process.stdout.write(JSON.stringify(said) + "\n")
}
server.end()
