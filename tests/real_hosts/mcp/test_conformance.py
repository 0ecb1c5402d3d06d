"""A host that has its tools from `readcache mcp`, names its readers, and tells what leaves the conversation."""

from __future__ import annotations

import asyncio
import importlib.metadata
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from readcache import Mode, Policy
from readcache.serve.mcp.readers import McpReaders
from readcache.serve.mcp.tools import McpTools
from readcache.testing.conformance import Conformance, make_project
from readcache.testing.hosts import Bash, Clear, Compact, Delegate, Edit, Read, Rewind, Seen, Step
from tests.real_hosts.mcp.client import NOW, Connected, Got, connected
from tests.real_hosts.measured import Run, compare
from tests.real_hosts.measured_script import SHORT_STEPS, result_chars


class McpHost:
    """A loop with a scripted model and the server's tools."""

    can: frozenset[type] = frozenset((Bash, Read, Edit, Delegate, Compact, Clear, Rewind))

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        return asyncio.run(self._converse(root, steps, on=on))

    async def _converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        if not on:  # what the tools give then does not depend on the client: no process is started
            agent = McpAgent(Direct(root), root, "main")
            return [await agent.step(step) for step in steps]
        async with connected(root) as server:
            agent = McpAgent(server, root, "main")
            return [await agent.step(step) for step in steps]

    @staticmethod
    def normal(text: str) -> str:
        """A result without the directory of the run."""
        return text.replace("/without/", "/with/")


class Direct:
    """The tools, switched off, called without a server."""

    def __init__(self, root: Path) -> None:
        self.tools = McpTools(str(root), McpReaders(str(root), policy=Policy(mode=Mode.OFF)))

    async def call(self, name: str, *, meta: dict[str, Any], **given: Any) -> Got:
        """One call of a tool."""

        async def progress(so_far: float, total: float, words: str) -> None:
            """Nobody wants to know."""

        found = await self.tools.call(name, given, meta, [self.tools.root], progress)
        text = "\n".join(part["text"] for part in found["content"])
        return Got(text, found.get("structuredContent") or {}, bool(found.get("isError")))


class McpAgent:
    """One reader: its conversation is the list of the results that it still sees."""

    def __init__(self, server: Connected | Direct, root: Path, name: str) -> None:
        self.server, self.root, self.name = server, root, name
        self.said = ["the task"]
        self.results: dict[str, str] = {}  # by call id
        self.number, self.batch = 0, ""

    async def step(self, step: Step) -> Seen:
        """What the model is sent after it."""
        ids, inner = list[str](), list[Seen]()
        if isinstance(step, tuple):
            names = [f"{self.name}-{self.number + n}" for n in range(len(step))]
            self.number += len(step)
            self.batch = names[0]
            texts = await asyncio.gather(*(self.use(call, name, inner) for call, name in zip(step, names, strict=True)))
            for call, name, text in zip(step, names, texts, strict=True):
                if not isinstance(call, Delegate):
                    self.results[name] = text
                    ids.append(name)
        elif isinstance(step, Compact):
            plan = await self.tool("restore_plan", "")
            self.said, self.results = ["a summary", plan.text], {}
            await self.left(restored=plan.data)
        elif isinstance(step, Clear):
            self.results.pop(next(iter(self.results)))
            await self.left()
        elif isinstance(step, Rewind):
            for name in list(self.results)[-step.calls :]:
                del self.results[name]
            await self.left()
        return Seen((*self.said, *self.results.values()), tuple(self.results[name] for name in ids), tuple(inner))

    async def left(self, **more: Any) -> None:
        """Tells what is left of the results."""
        done = await self.tool("compacted", "", keep=list(self.results), **more)
        for name, text in done.data["rewrites"].items():
            self.results[name] = text

    async def use(self, call: Any, name: str, inner: list[Seen]) -> str:
        """The result of one call."""
        if isinstance(call, Delegate):
            sub = McpAgent(self.server, self.root, name)
            inner += [await sub.step((one,)) for one in call.calls]
            return ""
        if isinstance(call, Bash):
            timeout: dict[str, Any] = {} if call.timeout is None else {"timeout": call.timeout}
            return (await self.tool("run", name, command=call.command, **timeout)).text
        if isinstance(call, Edit):
            return self.edit(self.root / call.path, call.old, call.new)
        end: dict[str, Any] = {} if call.end is None else {"end": call.end}
        return (await self.tool("read", name, path=call.path, start=call.start, numbered=True, **end)).text

    @staticmethod
    def edit(path: Path, old: str, new: str) -> str:
        """An edit tool of the client's own, of which the server is not told."""
        path.write_text(path.read_text().replace(old, new, 1))
        return "edited"

    async def tool(self, tool: str, name: str, **given: Any) -> Got:
        """Calls a tool of the server as this reader."""
        meta = {"readcache/reader": self.name, "readcache/batch": self.batch}
        meta |= {"readcache/call_id": name} if name else {}
        return await self.server.call(tool, meta=meta, **given)


@pytest.mark.skipif(not NOW, reason="once is enough: the tools are the same with each version of the package")
class TestMcp(Conformance):
    host = McpHost()


@pytest.mark.skipif(not NOW, reason="the newest is measured")
def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    async def converse(root: Path, switch: str) -> tuple[list[Seen], float]:
        async with connected(root, READCACHE=switch) as server:
            began = time.monotonic()
            agent = McpAgent(server, root, "main")
            seen = [await agent.step(step) for step in SHORT_STEPS]
            return seen, time.monotonic() - began

    def run_steps(root: Path, on: bool) -> Run:
        make_project(root)
        seen, took = asyncio.run(converse(root, "on" if on else "off"))
        return Run(result_chars(seen), took, len(SHORT_STEPS))

    compare("mcp", {"mcp": importlib.metadata.version("mcp")}, run_steps, tmp_path)
