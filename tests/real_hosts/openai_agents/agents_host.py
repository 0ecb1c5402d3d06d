"""The real SDK with its own scripted model, and the tools that the tests give it."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from readcache import Marks
from readcache.hosts.openai_agents import ReadcacheFilter
from readcache.testing.hosts import Bash, Clear, Compact, Delegate, Edit, Read, Rewind, Seen, Step, Worker

Items = list[dict[str, Any]]


def make_tools(root: Path) -> list[Any]:
    """Tools as users write them."""

    def bash(command: str, timeout: float = 30) -> str:
        """Runs a command."""
        try:
            ran = subprocess.run(["bash", "-c", command], cwd=root, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired as error:
            return f"{(error.stdout or b'').decode()}\n[timed out after {timeout} s]"
        return f"{ran.stdout}{ran.stderr}\nExit code: {ran.returncode}"

    def read_file(path: str, start_line: int = 1, end_line: int | None = None) -> str:
        """Reads lines, with their numbers."""
        lines = (root / path).read_text().splitlines()[start_line - 1 : end_line]
        return "".join(f"{n:6}\t{line}\n" for n, line in enumerate(lines, start_line))

    def edit_file(path: str, old: str, new: str) -> str:
        """Replaces a text."""
        (root / path).write_text((root / path).read_text().replace(old, new, 1))
        return "edited"

    return [function_tool(bash), function_tool(read_file), function_tool(edit_file)]


def as_call(call: Any, call_id: str) -> Any:
    """The call as a model makes it."""
    if isinstance(call, Bash):
        timeout = {} if call.timeout is None else {"timeout": call.timeout}
        return function_call("bash", {"command": call.command, **timeout}, call_id=call_id)
    if isinstance(call, Edit):
        return function_call("edit_file", {"path": call.path, "old": call.old, "new": call.new}, call_id=call_id)
    if isinstance(call, Read):
        end = {} if call.end is None else {"end_line": call.end}
        return function_call("read_file", {"path": call.path, "start_line": call.start, **end}, call_id=call_id)
    return function_call("searcher", {"input": "look"}, call_id=call_id)


class AgentsHost:
    """See `HostUnderTest`."""

    can: frozenset[type] = frozenset((Bash, Read, Edit, Delegate, Compact, Clear, Rewind, Worker))

    def __init__(self) -> None:
        self.store: Path | None = None
        self.clear: Marks | None = None

    def normal(self, text: str) -> str:
        """Without the directory of the project, which some versions name in errors."""
        return re.sub(r"/with(?:out)?(?=/)", "", text)

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """One conversation; each step is a run of its own that goes on with the last one's items."""
        numbers = {0, *(step.number for step in steps if isinstance(step, Worker))}
        store = None if self.store is None else str(self.store)
        ours = {number: ReadcacheFilter(str(root), store=store, clear=self.clear) if on else None for number in numbers}
        talk = Talk(
            make_tools(root),
            {number: RunConfig(call_model_input_filter=each, tracing_disabled=True) for number, each in ours.items()},
        )
        seen = [talk.step(step) for step in steps]
        for each in filter(None, ours.values()):
            each.close()
        return seen


class Talk:
    """One conversation so far."""

    def __init__(self, tools: list[Any], configs: dict[int, Any]) -> None:
        self.tools, self.configs, self.config = tools, configs, configs[0]
        self.items: Items = [{"role": "user", "content": "the task"}]
        self.number = 0

    def step(self, step: Step) -> Seen:
        """What the model is sent after it."""
        if isinstance(step, tuple):
            return self.calls(step)
        if isinstance(step, Compact):
            self.items = [{"role": "user", "content": "A summary of what came before."}]
        elif isinstance(step, Clear):
            at = next(n for n, item in enumerate(self.items) if item.get("type") == "function_call_output")
            self.items = [*self.items[:at], {**self.items[at], "output": "[cleared]"}, *self.items[at + 1 :]]
        elif isinstance(step, Worker):
            self.config = self.configs[step.number]
        else:
            at = [n for n, item in enumerate(self.items) if item.get("type") == "function_call"][-step.calls]
            self.items = [*self.items[:at], {"role": "user", "content": "again"}]
        sent = self.run([])
        return Seen(texts_of(sent))

    def calls(self, step: tuple[Any, ...]) -> Seen:
        """The model makes these calls in one message."""
        ids = [f"call_{self.number + n}" for n in range(len(step))]
        self.number += len(step)
        inner = next((call.calls for call in step if isinstance(call, Delegate)), ())
        sub = ScriptedModel(
            [*([as_call(call, f"{ids[0]}_{n}")] for n, call in enumerate(inner)), [assistant_message("done")]]
        )
        tool = Agent(name="searcher", model=sub, tools=self.tools).as_tool(
            "searcher", "Searches.", run_config=self.config
        )
        sent = self.run([as_call(call, name) for call, name in zip(step, ids, strict=True)], tool)
        results = {item["call_id"]: item["output"] for item in sent if item.get("type") == "function_call_output"}
        seen = [Seen(texts_of(call.input), (call.input[-1]["output"],)) for call in sub.calls[1:]]
        shown = [results[name] for call, name in zip(step, ids, strict=True) if not isinstance(call, Delegate)]
        return Seen(texts_of(sent), tuple(shown), tuple(seen))

    def run(self, calls: list[Any], *tools: Any) -> Items:
        """What the model was sent last."""
        model = ScriptedModel([*([calls] if calls else []), [assistant_message("ok")]])
        agent = Agent(name="coder", model=model, tools=[*self.tools, *tools])
        result = asyncio.run(Runner.run(agent, self.items, run_config=self.config))
        self.items = [*result.to_input_list(), {"role": "user", "content": "go on"}]
        sent: Items = list(model.calls[-1].input)
        return sent


def texts_of(items: Any) -> tuple[str, ...]:
    """Every text in a request."""
    return tuple(str(item.get("output") or item.get("arguments") or item.get("content")) for item in items)
