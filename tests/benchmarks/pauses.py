"""How long an adapter keeps an event loop from its other tasks, when a conversation with 200 results is taken up.

python tests/benchmarks/pauses.py [--short] [--check]

It measures the hosts whose packages this Python has; tests/real_hosts/run.py makes environments with them.

A task beside the adapter wakes all the time. Its longest pause is compared with the one beside a thread that does
nothing but count: Python takes 5 ms before it interrupts a thread for another one.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from measuring import Table, main

RESULTS, LINES = 200, 200
WAIT = 0.0005  # seconds that the other task sleeps
Adapter = Callable[[], Awaitable[object]]


def measure(chosen: argparse.Namespace, table: Table) -> None:
    rounds = 3 if chosen.short else 15
    with tempfile.TemporaryDirectory() as directory:
        for name, needs, adapter in ADAPTERS:
            if importlib.util.find_spec(needs) is None:
                print(f"{name:50s} is not installed here")
                continue
            found: list[Pauses] = []
            counting: list[Pauses] = []
            for number in range(rounds):
                found.append(asyncio.run(watch(adapter(f"{directory}/{name} {number}"))))
                counts = partial(asyncio.to_thread, count, found[-1].taken)
                counting.append(asyncio.run(watch(counts)))
            ours, other = ([statistics.median(each) for each in zip(*rows, strict=True)] for rows in (found, counting))
            note = f"of {ours[0]:.0f} ms in all"
            table.row(f"{name}: most work in the loop's thread", ours[1], note, most=5, unit="ms")
            note = f"{ours[2]:.1f} ms and {other[2]:.1f} ms"
            table.row(f"{name}: longest pause, beside counting", ours[2] / other[2], note, most=1)


class Pauses(NamedTuple):
    """Milliseconds that were taken in all; the most work of the loop's thread between two turns of another task, which
    a busy machine does not lengthen; and the longest pause of that task."""

    taken: float
    work: float
    pause: float


def count(milliseconds: float) -> None:
    """Does so, so long."""
    end, number = time.perf_counter() + milliseconds / 1000, 0
    while time.perf_counter() < end:
        number += 1


async def watch(adapter: Adapter) -> Pauses:
    """What another task notices of it."""
    work = pause = 0.0

    async def tick() -> None:
        nonlocal work, pause
        while True:
            before, worked = time.perf_counter(), time.thread_time()
            await asyncio.sleep(WAIT)
            pause = max(pause, time.perf_counter() - before - WAIT)
            work = max(work, time.thread_time() - worked)

    await asyncio.to_thread(int)  # the pool's first thread is there
    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    work, pause, began = 0.0, 0.0, time.perf_counter()
    await adapter()
    taken = time.perf_counter() - began
    await asyncio.sleep(2 * WAIT)
    ticking.cancel()
    return Pauses(taken * 1000, work * 1000, pause * 1000)


def calls() -> list[tuple[str, str]]:
    """Commands and what they printed: files that are read in part, in whole, and again."""
    out = []
    for number in range(RESULTS):
        name, half = f"src/part_{number // 3}.py", LINES // 2
        text = [f"def item_{n}_of_{number // 3}(count: int) -> float:  # a line of a file\n" for n in range(LINES)]
        whole, part = (f"cat {name}", "".join(text)), (f"head -{half} {name}", "".join(text[:half]))
        out.append(part if number % 3 == 1 else whole)
    return out


def openai_agents(root: str) -> Adapter:
    from readcache.hosts.openai_agents import ReadcacheFilter

    @dataclass
    class Input:
        input: list[Any] = field(default_factory=list)

    given = Input([{"role": "user", "content": "the task"}])
    for number, (command, output) in enumerate(calls()):
        call = {"type": "function_call", "call_id": f"c{number}", "name": "bash"}
        given.input += [
            {**call, "arguments": f'{{"command": "{command}"}}'},
            {"type": "function_call_output", "call_id": f"c{number}", "output": output},
        ]
    ours, data = ReadcacheFilter(root), SimpleNamespace(model_data=given, agent=None, context=None)
    return lambda: ours(data)


def langchain(root: str) -> Adapter:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    from readcache.hosts.langchain import ReadcacheMiddleware

    messages: list[Any] = [HumanMessage("the task", id="first")]
    for number, (command, output) in enumerate(calls()):
        call = {"name": "bash", "args": {"command": command}, "id": f"c{number}", "type": "tool_call"}
        messages += [AIMessage("", tool_calls=[call]), ToolMessage(output, tool_call_id=f"c{number}")]
    ours = ReadcacheMiddleware(root)
    running = SimpleNamespace(execution_info=SimpleNamespace(thread_id="one", checkpoint_ns=""))
    request = SimpleNamespace(messages=messages, state={"messages": messages}, runtime=running)
    request.override = lambda **_: request

    async def model(_: Any) -> None:
        return None

    return lambda: ours.awrap_model_call(request, model)


def openhands(root: str) -> Adapter:
    from openhands.sdk.context.view import View
    from openhands.sdk.event import ActionEvent, ObservationEvent
    from openhands.sdk.llm import MessageToolCall, TextContent
    from openhands.tools.terminal import TerminalAction, TerminalObservation

    from readcache.hosts.openhands import ReadcacheCondenser

    events: list[Any] = []
    for number, (command, output) in enumerate(calls()):
        known: dict[str, Any] = {"tool_name": "terminal", "tool_call_id": f"c{number}"}
        action = TerminalAction(command=command)
        called = MessageToolCall(id=f"c{number}", name="terminal", arguments="{}", origin="completion")
        asked = ActionEvent(thought=[], action=action, tool_call=called, llm_response_id=f"r{number}", **known)
        shown = TerminalObservation(content=[TextContent(text=output)], command=command, exit_code=0)
        events += [asked, ObservationEvent(observation=shown, action_id=asked.id, **known)]
    ours, view = ReadcacheCondenser(root=root), View(events=events)
    return lambda: ours.acondense(view)


def claude_agent_sdk(root: str) -> Adapter:
    from readcache import Sessions
    from readcache.hosts.claude_agent_sdk import hooks

    os.makedirs(root)
    path, lines, known = Path(root, "one.jsonl"), [], {"sessionId": "one", "cwd": root, "isSidechain": False}
    parent = None
    for number, (command, output) in enumerate(calls()):
        asked = {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": command}}
        shown = {"type": "tool_result", "tool_use_id": f"c{number}", "content": output}
        for role, block in (("assistant", asked), ("user", shown)):
            entry = {"type": role, "uuid": f"{role}{number}", "parentUuid": parent, **known}
            lines.append(json.dumps({**entry, "message": {"role": role, "content": [block]}}))
            parent = entry["uuid"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command, output = calls()[0]
    event: dict[str, Any] = {
        "hook_event_name": "PostToolUse",
        "session_id": "one",
        "transcript_path": str(path),
        "cwd": root,
    }
    event |= {"tool_name": "Bash", "tool_use_id": "new", "tool_input": {"command": command}}
    event |= {"tool_response": {"stdout": output, "stderr": "", "interrupted": False}}
    answer: Any = hooks(Sessions(root))["PostToolUse"][0].hooks[0]
    return lambda: answer(event, None, None)


ADAPTERS: list[tuple[str, str, Callable[[str], Adapter]]] = [
    ("OpenAI Agents SDK", "agents", openai_agents),
    ("LangChain", "langchain", langchain),
    ("claude-agent-sdk", "claude_agent_sdk", claude_agent_sdk),
    ("OpenHands SDK", "openhands", openhands),
]

if __name__ == "__main__":
    main(__doc__, measure)
