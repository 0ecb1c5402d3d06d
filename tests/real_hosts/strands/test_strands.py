"""Strands Agents, the real package with a scripted model."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from strands import Agent, tool
from strands.agent.conversation_manager import (
    NullConversationManager,
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)
from strands.models import Model
from strands.session.file_session_manager import FileSessionManager

from readcache import Marks, Policy
from readcache.hosts.strands import ReadcacheAgentPlugin
from readcache.testing.conformance import Conformance, make_project
from readcache.testing.hosts import Bash, Clear, Compact, Delegate, Edit, Read, Rewind, Seen, Step, Worker
from readcache.testing.requests import markers
from tests.real_hosts.examples_page import switched_on
from tests.real_hosts.measured_script import STEPS, measure
from tests.real_hosts.user_tools import check_settings, user_call, user_tools
from tests.real_hosts.window import MARKS, MODEL, Provider

Messages = list[Any]
CLEARED = [{"text": "[cleared]"}]
HEADING = "Files restored after compaction"


class Script(Model):  # type: ignore[misc]  # no types here
    """A model that makes the calls in `answers`, and keeps what it was sent."""

    def __init__(self) -> None:
        self.answers: list[list[tuple[str, dict[str, Any]]]] = []
        self.requests: list[Messages] = []
        self.number = 0

    def update_config(self, **_: Any) -> None:
        """There is nothing to set."""

    def get_config(self) -> dict[str, Any]:
        """There is nothing set."""
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        """Nobody asks."""
        raise NotImplementedError

    async def stream(self, messages: Messages, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """What the model says next."""
        self.requests.append(copy.deepcopy(messages))
        calls = self.answers.pop(0) if self.answers else []
        yield {"messageStart": {"role": "assistant"}}
        for name, given in calls:
            self.number += 1
            use = {"name": name, "toolUseId": f"call-{self.number}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(given)}}}}
            yield {"contentBlockStop": {}}
        if not calls:
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


class StrandsHost:
    """An agent with the user's tools, and one more agent that is a tool of it."""

    can = frozenset((Bash, Read, Edit, Delegate, Compact, Clear, Rewind, Worker))
    store: Path | None = None
    clear: Marks | None = None

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        store = None if self.store is None else str(self.store)
        talk = Conversation(
            root, lambda: [ReadcacheAgentPlugin(str(root), store=store, clear=self.clear)] if on else []
        )
        return [talk.step(step) for step in steps]


class Conversation:
    """One conversation."""

    def __init__(self, root: Path, ours: Callable[[], list[Any]]) -> None:
        self.model, self.inner = Script(), Script()
        self.tools = [tool(one) for one in user_tools(root)]
        self.past: list[tuple[int, Messages]] = [(0, [])]
        self.ours = ours
        self.workers = {0: self.worker([])}
        self.agent = self.workers[0]

    def worker(self, messages: Messages) -> Agent:
        """The agent in a process of its own."""
        plugins = self.ours()
        more: dict[str, Any] = {"callback_handler": None, "conversation_manager": NullConversationManager()}

        @tool  # type: ignore[untyped-decorator,unused-ignore]  # no types here
        def delegate(task: str) -> str:
            """Has a sub-agent do it."""
            return str(Agent(model=self.inner, tools=self.tools, plugins=plugins, **more)(task))

        more["messages"] = copy.deepcopy(messages)
        agent = Agent(model=self.model, tools=[*self.tools, delegate], plugins=plugins, **more)
        del more["messages"]
        return agent

    def step(self, step: Step) -> Seen:
        """What the model is sent after it."""
        calls, made = 0, self.past[-1][0]
        self.model.requests.clear()
        self.inner.requests.clear()
        if isinstance(step, Worker):
            before = self.agent.messages
            self.agent = self.workers.get(step.number) or self.worker(before)
            self.workers[step.number], self.agent.messages[:] = self.agent, copy.deepcopy(before)
        messages = self.agent.messages
        if isinstance(step, tuple):
            calls = len(step)
            self.inner.answers = [[user_call(use)] for one in step if isinstance(one, Delegate) for use in one.calls]
            self.model.answers = [
                [("delegate", {"task": "look"}) if isinstance(use, Delegate) else user_call(use) for use in step]
            ]
            made += calls
        elif isinstance(step, Compact):
            messages[:] = [{"role": "assistant", "content": [{"text": "A summary."}]}]
        elif isinstance(step, Clear):
            found = [block["toolResult"] for m in messages for block in m["content"] if "toolResult" in block]
            next(one for one in found if one["content"] != CLEARED)["content"] = CLEARED
        elif isinstance(step, Rewind):
            made -= step.calls
            messages[:] = copy.deepcopy(next(then for number, then in self.past if number == made))
        self.agent("go on")
        self.past.append((made, copy.deepcopy(messages)))
        return seen(self.model.requests[-1], calls, self.inner.requests)


def seen(request: Messages, calls: int, inner: list[Messages]) -> Seen:
    """A request in the suite's words."""
    blocks = [block for message in request for block in message["content"]]
    results = [block for block in blocks if "toolResult" in block][-calls:] if calls else []
    texts = tuple(text_of(block) for block in blocks if not any(block is result for result in results))
    return Seen(texts, tuple(map(text_of, results)), tuple(seen(one, 1, []) for one in inner[1:]))


def text_of(block: Any) -> str:
    """What a model reads there."""
    if "toolResult" in block:
        return "\n".join(inner["text"] for inner in block["toolResult"]["content"])
    return "\n".join(map(str, block["toolUse"]["input"].values())) if "toolUse" in block else str(block.get("text"))


class TestStrands(Conformance):
    host = StrandsHost()


def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    def run_steps(root: Path, on: bool) -> int:
        talk, chars = Conversation(root, lambda: [ReadcacheAgentPlugin(str(root))] if on else []), 0
        for step in STEPS:
            talk.step(step)
            blocks = [block for request in talk.model.requests for message in request for block in message["content"]]
            chars += sum(len(text_of(block)) for block in blocks if "toolResult" in block)
        return chars

    measure("strands", "strands-agents", run_steps, tmp_path)


def cat(path: str = "shop.py") -> tuple[str, dict[str, Any]]:
    return "bash", {"command": f"cat {path}"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project of its own."""
    make_project(tmp_path / "project")
    return tmp_path / "project"


def agent_of(root: Path, model: Script, **more: Any) -> Agent:
    tools = [tool(one) for one in user_tools(root)]
    return Agent(model=model, tools=tools, callback_handler=None, **more)


def results(request: Messages) -> list[str]:
    return [text_of(block) for message in request for block in message["content"] if "toolResult" in block]


def test_the_agents_messages_stay_as_the_tools_gave_them(root: Path) -> None:
    model, plugin = Script(), ReadcacheAgentPlugin(str(root))
    model.answers = [[cat()], [cat()]]
    agent = agent_of(root, model, plugins=[plugin])
    agent("read it")
    first, second = results(model.requests[-1])
    assert markers(second)
    assert results(agent.messages) == [first, first]
    assert plugin.stats()["calls"] == 2
    plugin.close()


def test_calls_made_at_once_do_not_point_at_each_other(root: Path) -> None:
    model = Script()
    model.answers = [[cat(), cat()], [cat()]]
    agent_of(root, model, plugins=[ReadcacheAgentPlugin(str(root))])("read it")
    first, second, third = results(model.requests[-1])
    assert not markers(first + second)
    assert markers(third)


def test_where_a_window_slides_no_marker_loses_its_lines(root: Path) -> None:
    model = Script()
    model.answers = [[cat()], [cat()], *([("bash", {"command": f"echo {n}"})] for n in range(4)), [cat()]]
    window = SlidingWindowConversationManager(window_size=6, per_turn=True)
    agent_of(root, model, plugins=[ReadcacheAgentPlugin(str(root))], conversation_manager=window)("read it")
    assert len(model.requests[-1]) <= 8
    for request in model.requests:
        shown = results(request)
        for at, text in enumerate(shown):
            assert not markers(text) or any("number 60 of" in other for other in shown[:at]) or "GONE" in text


def test_behind_a_summary_stands_what_was_read(root: Path) -> None:
    model, writer = Script(), Script()
    summarizing = SummarizingConversationManager(
        summary_ratio=0.5, preserve_recent_messages=2, summarization_agent=agent_of(root, writer)
    )
    plugin = ReadcacheAgentPlugin(str(root), policy=Policy(min_worth=0))  # a pointer to the section, too
    agent = agent_of(root, model, plugins=[plugin], conversation_manager=summarizing)
    model.answers = [[cat()], [("bash", {"command": "ls"})], [cat("crlf.txt")]]
    agent("read them")
    summarizing.reduce_context(agent)
    model.answers = [[("bash", {"command": "head -50 shop.py"})]]
    agent("go on")
    *_, before, after = model.requests
    for request in (before, after):
        (section,) = [
            block["text"] for message in request for block in message["content"] if HEADING in block.get("text", "")
        ]
        assert "number 60 of" in section
    assert markers(results(after)[-1])


def test_a_conversation_that_another_process_takes_up_is_sent_as_before(root: Path, tmp_path: Path) -> None:
    sent: list[list[str]] = []
    for _ in range(2):  # the second agent has its messages from the disk, and a plugin that knows nothing
        model = Script()
        model.number = len(sent) * 10
        model.answers = [[cat()], [cat()]] if not sent else [[("bash", {"command": "head -40 shop.py"})]]
        kept = FileSessionManager(session_id="one", storage_dir=str(tmp_path / "kept"))
        agent_of(root, model, plugins=[ReadcacheAgentPlugin(str(root))], session_manager=kept)("read it")
        sent.append(results(model.requests[-1]))
    assert sent[1][:2] == sent[0]
    assert markers(sent[1][1])
    assert markers(sent[1][2])


class Counting(Script):
    """A model whose provider counts its requests."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.provider = Provider(root)

    def get_config(self) -> dict[str, Any]:
        """Its name."""
        return {"model_id": MODEL}

    async def stream(self, messages: Messages, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """What the model says next, and the size of the request."""
        blocks = [block for message in messages for block in message["content"]]
        calls = [block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block]
        answered = [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block]
        command = self.provider.command([*map(text_of, blocks)], calls, answered)
        self.answers = [[("bash", {"command": command})]] if command else []
        async for event in super().stream(messages):
            yield event
        size = self.provider.sizes[-1]
        usage = {"inputTokens": size, "outputTokens": 9, "totalTokens": size + 9, "cacheReadInputTokens": size - 99}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


def test_results_are_cleared_before_a_window_is_full(root: Path) -> None:
    model = Counting(root)
    manager = NullConversationManager()
    agent_of(root, model, plugins=[ReadcacheAgentPlugin(str(root), clear=MARKS)], conversation_manager=manager)("go on")
    model.provider.check()


def test_the_lines_of_the_page_switch_it_on(root: Path) -> None:
    agent, model = switched_on("readcache.hosts.strands", root).agent, Script()
    for one in user_tools(root):
        agent.tool_registry.register_tool(tool(one))
    agent.model, model.answers = model, [[cat()], [cat()]]
    agent("read it")
    assert markers(results(model.requests[-1])[1])


def test_a_fork_knows_what_its_parent_saw_and_a_fresh_agent_nothing(root: Path) -> None:
    plugin, models = ReadcacheAgentPlugin(str(root)), [Script(), Script(), Script()]
    parent = agent_of(root, models[0], plugins=[plugin])
    models[0].answers = [[cat()]]
    parent("read it")
    twin = agent_of(root, models[1], plugins=[plugin], messages=copy.deepcopy(parent.messages))
    fresh = agent_of(root, models[2], plugins=[plugin])
    for model, agent, first in zip(models[1:], (twin, fresh), (10, 20), strict=True):
        model.number, model.answers = first, [[("bash", {"command": "head -50 shop.py"})], [cat("crlf.txt")]]
        agent("go on")
    models[0].answers = [[cat("crlf.txt")]]
    parent("go on")
    assert [bool(markers(text)) for text in results(models[1].requests[-1])] == [False, True, False]
    assert not any(map(markers, results(models[2].requests[-1]) + results(models[0].requests[-1])))


def test_settings_are_those_of_every_adapter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def kept(plugin: ReadcacheAgentPlugin) -> Any:
        return plugin._lists._settings.policy, plugin._lists._settings.store

    check_settings(ReadcacheAgentPlugin, kept, monkeypatch, tmp_path)
