"""Pydantic AI, the real package with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    CompactionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RequestUsage

from readcache import Marks, Policy
from readcache.hosts.pydantic_ai import ReadcacheCapability
from readcache.testing.conformance import Conformance
from readcache.testing.hosts import Bash, Clear, Compact, Delegate, Edit, Read, Rewind, Seen, Step, Worker
from readcache.testing.requests import markers
from tests.real_hosts.examples_page import switched_on
from tests.real_hosts.measured_script import STEPS, measure
from tests.real_hosts.user_tools import check_settings, user_call, user_tools
from tests.real_hosts.window import MARKS, MODEL, Provider


class PydanticHost:
    """An agent with the user's tools. Its history is cleared by a processor, and handed to each run."""

    can = frozenset((Bash, Read, Edit, Delegate, Compact, Clear, Rewind, Worker))
    store: Path | None = None
    clear: Marks | None = None

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        store = None if self.store is None else str(self.store)
        given: dict[str, Any] = {"store": store, "clear": self.clear}
        return Conversation(root, lambda: [ReadcacheCapability(str(root), **given)] if on else []).converse(steps)


class Conversation:
    """One conversation with an agent and its sub-agent."""

    def __init__(self, root: Path, ours: Callable[[], list[Any]]) -> None:
        self.requests: list[list[ModelMessage]] = []
        self.answers: list[list[Any]] = []
        self.history: list[ModelMessage] = []
        self.past = [(0, self.history)]
        self.cleared = self.number = 0
        self.root, self.ours, self.agents = root, ours, dict[int, tuple[Any, Any]]()
        self.go_to(0)

    def go_to(self, worker: int) -> None:
        """The agents in a process of their own."""
        if worker in self.agents:
            self.agent, self.worker = self.agents[worker]
            return
        ours, root = self.ours(), self.root
        processor: Any = ProcessHistory(self.clear)
        # Ours is first in the list: it sees to its place itself.
        more: dict[str, Any] = {"tools": user_tools(root), "capabilities": [*ours, processor]}
        self.agent = Agent(FunctionModel(self.answer), name="coder", **more)
        self.worker = Agent(FunctionModel(self.answer), name="worker", tools=user_tools(root), capabilities=[*ours])
        self.agent.tool_plain(self.delegate)
        self.agents[worker] = self.agent, self.worker

    async def delegate(self, task: str) -> str:
        """Has a sub-agent do it."""
        return str((await self.worker.run(task)).output)

    def answer(self, messages: list[ModelMessage], _: Any) -> ModelResponse:
        """What the model says next."""
        self.requests.append(messages)
        calls = self.answers.pop(0) if self.answers else []
        made = [
            ToolCallPart(name, args, tool_call_id=f"call-{self.number + n}") for n, (name, args) in enumerate(calls)
        ]
        self.number += len(made)
        return ModelResponse(parts=made or [TextPart("done")])

    def clear(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        """The host takes the oldest results out."""
        left, out = self.cleared, []
        for message in messages:
            parts: list[Any] = []
            for part in message.parts:
                gone = isinstance(part, ToolReturnPart) and left > 0
                left -= gone
                parts.append(replace(part, content="[cleared]") if gone else part)
            out.append(replace(message, parts=parts))
        return out

    def converse(self, steps: Sequence[Step]) -> list[Seen]:
        """One `Seen` for each step."""
        return [self.step(step) for step in steps]

    def step(self, step: Step) -> Seen:
        """What the model is sent after it."""
        calls, made = 0, self.past[-1][0]
        self.requests.clear()
        if isinstance(step, tuple):
            calls = len(step)
            inner = [use for use in step if isinstance(use, Delegate)]
            outer = [("delegate", {"task": "look"}) if isinstance(use, Delegate) else user_call(use) for use in step]
            self.answers = [outer, *([user_call(use)] for one in inner for use in one.calls)]
            made += calls
        elif isinstance(step, Compact):
            self.history = [ModelRequest([CompactionPart("A summary.")])]
        elif isinstance(step, Clear):
            self.cleared += 1
        elif isinstance(step, Worker):
            self.go_to(step.number)
        else:
            made -= step.calls
            self.history = next(history for number, history in self.past if number == made)
        ran = asyncio.run(self.agent.run("go on", message_history=self.history, conversation_id="one"))
        self.history = ran.all_messages()
        self.past.append((made, self.history))
        return self.seen(self.requests[-1], calls, self.requests[2:-1])

    def seen(self, request: list[ModelMessage], calls: int, inner: list[list[ModelMessage]]) -> Seen:
        """A request in the suite's words."""
        parts = [part for message in request for part in message.parts]
        results = [part for part in parts if isinstance(part, ToolReturnPart)][-calls:] if calls else []
        texts = tuple(_text(part) for part in parts if not any(part is result for result in results))
        return Seen(texts, tuple(map(_text, results)), tuple(self.seen(one, 1, []) for one in inner))


def _text(part: Any) -> str:
    if isinstance(part, ToolCallPart):
        return "\n".join(map(str, part.args_as_dict().values()))
    return part.model_response_str() if isinstance(part, ToolReturnPart) else str(getattr(part, "content", ""))


class TestPydanticAI(Conformance):
    host = PydanticHost()


def test_a_history_that_is_cut_inside_of_the_request_leaves_no_marker_without_its_lines(tmp_path: Path) -> None:
    suite = TestPydanticAI()
    seen = suite.run_steps(tmp_path, (Bash("cat shop.py"),), (Bash("head -40 shop.py"),), Clear(), Clear())
    assert "GONE" in "".join(seen[2].texts) or not markers("".join(seen[2].texts))
    assert seen[2].texts.count("[cleared]") == 1
    assert not markers("".join(seen[3].texts))


def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    def run_steps(root: Path, on: bool) -> int:
        talk, chars = Conversation(root, lambda: [ReadcacheCapability(str(root))] if on else []), 0
        for step in STEPS:
            talk.step(step)
            parts = [part for request in talk.requests for message in request for part in message.parts]
            chars += sum(len(_text(part)) for part in parts if isinstance(part, ToolReturnPart))
        return chars

    measure("pydantic-ai", "pydantic-ai-slim", run_steps, tmp_path)


SHOP = "".join(f"def item_{n}(count: int) -> float:  # number {n} of the shop\n" for n in range(1, 61))
HEADING = "Files restored after compaction"
SUMMARY = CompactionPart("What was done.")
PROVIDERS = CompactionPart(provider_name="openai", provider_details={"encrypted_content": "x"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with two files in it."""
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "other.py").write_text(SHOP.replace("item", "thing"))
    return tmp_path


def bash(command: str, call_id: str) -> ToolCallPart:
    return ToolCallPart("bash", {"command": command}, tool_call_id=call_id)


def requests_of(
    root: Path, answers: list[list[Any]], *processors: Any, history: Sequence[ModelMessage] = ()
) -> list[list[ModelMessage]]:
    """What the model is sent in a run in which it gives these answers, and then ends."""
    requests: list[list[ModelMessage]] = []

    def answer(messages: list[ModelMessage], _: Any) -> ModelResponse:
        requests.append(list(messages))
        return ModelResponse(parts=answers[len(requests) - 1] if len(requests) <= len(answers) else [TextPart("done")])

    policy = Policy(min_worth=0)  # a pointer to a restored section, too
    ours: list[Any] = [ReadcacheCapability(str(root), policy=policy), *processors]
    agent: Agent[None, str] = Agent(FunctionModel(answer), name="coder", tools=user_tools(root), capabilities=ours)
    asyncio.run(agent.run("the task", conversation_id="one", message_history=list(history)))
    return requests


def sections(request: list[ModelMessage]) -> list[str]:
    parts = [part for message in request for part in message.parts if isinstance(part, UserPromptPart)]
    return [text for text in map(_text, parts) if HEADING in text]


def results(request: list[ModelMessage]) -> dict[str, str]:
    parts = [part for message in request for part in message.parts]
    return {part.tool_call_id: _text(part) for part in parts if isinstance(part, ToolReturnPart)}


def test_behind_a_providers_compaction_stands_what_was_read_and_later_reads_point_at_it(root: Path) -> None:
    later = [[bash("head -50 shop.py", "c")], [bash("cat other.py", "d")]]
    requests = requests_of(root, [[bash("cat shop.py", "a")], [PROVIDERS, bash("echo x", "b")], *later])
    assert not any(map(sections, requests[:2]))
    found = [sections(request) for request in requests[2:]]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 1, "nothing stands twice"
    assert SHOP.rstrip() in found[0][0]
    (marker,) = markers(results(requests[-1])["c"])
    assert f'"{found[0][0].splitlines()[0].removeprefix("## ")}"' in marker, "it names the section"


def test_a_result_before_a_providers_compaction_is_no_source(root: Path) -> None:
    """What the model asked for in the answer that compacts stands in the section, or is shown."""
    requests = requests_of(root, [[bash("cat shop.py", "a")], [PROVIDERS, bash("cat shop.py", "b")]])
    (section,) = sections(requests[-1])
    marker = "".join(markers(results(requests[-1])["b"]))
    assert SHOP.rstrip() in section
    assert not marker or section.splitlines()[0].removeprefix("## ") in marker


def test_a_summary_that_an_application_wrote_brings_back_what_was_read(root: Path) -> None:
    def compacts(messages: list[ModelMessage]) -> list[ModelMessage]:
        return messages if len(messages) < 5 else [ModelRequest([SUMMARY]), *messages[3:]]

    asks = [[bash("cat shop.py", "a")], [bash("cat other.py", "b")], [bash("head -50 shop.py", "c")]]
    *_, last = requests_of(root, asks, ProcessHistory(compacts))
    (section,) = sections(last)
    assert SHOP.rstrip() in section
    assert "thing_1(" not in section, "that result is still there"
    assert "a" not in results(last)
    (marker,) = markers(results(last)["c"])
    assert section.splitlines()[0].removeprefix("## ") in marker


def test_a_fork_knows_what_its_parent_saw_and_a_fresh_agent_nothing(root: Path) -> None:
    """A sub-agent that is given the parent's messages, one that is given none, and the parent, which goes on."""
    sent: dict[str, list[list[ModelMessage]]] = {"twin": [], "fresh": [], "parent": []}
    delegates = ToolCallPart("delegate", {}, tool_call_id="p2")
    asks = {
        "twin": [bash("head -50 shop.py", "t1"), bash("cat other.py", "t2")],
        "fresh": [bash("head -50 shop.py", "f1")],
        "parent": [bash("cat shop.py", "p1"), delegates, bash("cat other.py", "p3")],
    }

    def says(name: str) -> Any:
        def answer(messages: list[ModelMessage], _: Any) -> ModelResponse:
            sent[name].append(list(messages))
            return ModelResponse(parts=[asks[name].pop(0) if asks[name] else TextPart("done")])

        return FunctionModel(answer)

    ours: Any = ReadcacheCapability(str(root))
    agents = {
        name: Agent(says(name), name=name, deps_type=type(None), tools=user_tools(root), capabilities=[ours])
        for name in sent
    }

    async def delegate(ctx: RunContext[None]) -> str:
        """Has both do it."""
        await agents["twin"].run("look", message_history=ctx.messages[:-1])
        await agents["fresh"].run("look")
        return "done"

    agents["parent"].tool(delegate)
    asyncio.run(agents["parent"].run("the task"))
    twin, fresh, parent = (results(sent[name][-1]) for name in ("twin", "fresh", "parent"))
    assert twin["p1"] == SHOP
    assert markers(twin["t1"])
    assert not markers(twin["t2"] + "".join(fresh.values()) + "".join(parent.values()))


def test_the_history_stays_as_the_tools_gave_it(root: Path) -> None:
    ours = ReadcacheCapability(str(root))
    answers = [[bash("cat shop.py", "a")], [bash("cat shop.py", "b")], [TextPart("done")]]
    model = FunctionModel(lambda _, __: ModelResponse(parts=answers.pop(0)))
    agent: Agent[None, str] = Agent(model, tools=user_tools(root), capabilities=[ours])
    kept = results(asyncio.run(agent.run("the task")).all_messages())
    assert kept["a"] == kept["b"] == SHOP
    assert ours.stats()["calls"] == 2
    assert ours.stats()["tokens_saved"] > 0
    ours.close()


def test_a_result_that_is_no_text_is_left_alone(root: Path) -> None:
    def shop() -> dict[str, str]:
        """All of it."""
        return {"text": SHOP}

    sent: list[list[ModelMessage]] = []

    def answer(messages: list[ModelMessage], _: Any) -> ModelResponse:
        sent.append(messages)
        return ModelResponse(parts=[ToolCallPart("shop", {}) if len(sent) < 3 else TextPart("done")])

    ours: list[Any] = [ReadcacheCapability(str(root), policy="max")]
    asyncio.run(Agent(FunctionModel(answer), tools=[shop], capabilities=ours).run("the task"))
    parts = [part for message in sent[-1] for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [part.content for part in parts] == [{"text": SHOP}] * 2


def test_results_are_cleared_before_a_window_is_full(root: Path) -> None:
    provider, ours = Provider(root), ReadcacheCapability(str(root), clear=MARKS)

    def answer(messages: list[ModelMessage], _: Any) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        calls = [part.tool_call_id for part in parts if isinstance(part, ToolCallPart)]
        command = provider.command([*map(_text, parts)], calls, [*results(messages)])
        said: Any = bash(command, f"c{len(calls)}") if command else TextPart("done")
        return ModelResponse(parts=[said], usage=RequestUsage(input_tokens=provider.sizes[-1], output_tokens=9))

    agent: Agent[None, str] = Agent(
        FunctionModel(answer, model_name=MODEL), tools=user_tools(root), capabilities=[ours]
    )
    asyncio.run(agent.run("the task"))
    provider.check()


def test_the_lines_of_the_page_switch_it_on(root: Path) -> None:
    sent: list[list[ModelMessage]] = []

    def answer(messages: list[ModelMessage], _: Any) -> ModelResponse:
        sent.append(messages)
        return ModelResponse(parts=[bash("cat shop.py", f"{len(sent)}") if len(sent) < 3 else TextPart("done")])

    agent: Agent[None, str] = switched_on("readcache.hosts.pydantic_ai", root).agent
    toolset: Any = FunctionToolset(user_tools(root))
    asyncio.run(agent.run("the task", model=FunctionModel(answer), toolsets=[toolset]))
    assert markers(results(sent[-1])["2"])


def test_settings_are_those_of_every_adapter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def kept(ours: ReadcacheCapability) -> Any:
        return ours._lists._settings.policy, ours._lists._settings.store

    check_settings(ReadcacheCapability, kept, monkeypatch, tmp_path)
