"""Google ADK, the real package with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.adk.runners import InMemoryRunner, Runner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from pydantic import Field

from readcache import Marks
from readcache.hosts.google_adk import ReadcachePlugin
from readcache.testing.conformance import Conformance, make_project
from readcache.testing.hosts import Bash, Clear, Compact, Delegate, Edit, Read, Rewind, Seen, Step, Worker
from readcache.testing.requests import markers
from tests.real_hosts.examples_page import switched_on
from tests.real_hosts.measured_script import STEPS, measure
from tests.real_hosts.user_tools import check_settings, user_call, user_tools
from tests.real_hosts.window import MARKS, MODEL, Provider

Content = Any


class Script(BaseLlm):  # type: ignore[misc]  # no types here
    """A model that makes the calls in `answers`, and keeps what it was sent."""

    model: str = "script"
    answers: list[list[Any]] = Field(default_factory=list)
    requests: list[list[Content]] = Field(default_factory=list)

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[Any]:
        """What the model says next."""
        assert not stream
        self.requests.append([content.model_copy(deep=True) for content in llm_request.contents])
        calls = self.answers.pop(0) if self.answers else []
        parts = [types.Part.from_function_call(name=name, args=args) for name, args in calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts or [types.Part(text="done")]))


class AdkHost:
    """An agent with the user's tools, and one more agent that is a tool of it. Plugins shorten what is sent."""

    can = frozenset((Bash, Read, Edit, Delegate, Compact, Clear, Rewind, Worker))
    store: Path | None = None
    clear: Marks | None = None

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        store = None if self.store is None else str(self.store)

        def ours() -> list[Any]:
            return [ReadcachePlugin(str(root), store=store, clear=self.clear)] if on else []

        return asyncio.run(Conversation(root, ours(), elsewhere=ours).converse(steps))


class Conversation:
    """One conversation."""

    def __init__(
        self, root: Path, ours: list[Any], *, are_last: bool = True, elsewhere: Callable[[], list[Any]] = list
    ) -> None:
        self.model, self.inner = Script(), Script()
        self.cleared, self.summed_up = 0, 0
        shortens = [ContextFilterPlugin(custom_filter=self.shorten)]
        worker = LlmAgent(name="worker", model=self.inner, tools=user_tools(root))
        agent = LlmAgent(name="coder", model=self.model, tools=[*user_tools(root), AgentTool(worker)])
        plugins = [*shortens, *ours] if are_last else [*ours, *shortens]
        self.runner = InMemoryRunner(agent, app_name="app", plugins=plugins)
        self.runners, self.elsewhere = {0: self.runner}, elsewhere
        self.invocations: list[tuple[int, str]] = []  # calls, and where they were made

    def shorten(self, contents: list[Content]) -> list[Content]:
        """The host takes the beginning out, and the oldest results."""
        left, out = self.cleared, [types.Content(role="user", parts=[types.Part(text="A summary.")])][: self.summed_up]
        for content in contents[self.summed_up :]:
            parts = []
            for part in content.parts:
                gone = bool(part.function_response) and left > 0
                left -= gone
                cleared = part.function_response and part.function_response.model_copy(
                    update={"response": {"result": "[cleared]"}}
                )
                parts.append(part.model_copy(update={"function_response": cleared}) if gone else part)
            out.append(content.model_copy(update={"parts": parts}))
        return out

    async def converse(self, steps: Sequence[Step]) -> list[Seen]:
        """One `Seen` for each step."""
        self.session = await self.runner.session_service.create_session(app_name="app", user_id="me")
        return [await self.step(step) for step in steps]

    async def step(self, step: Step) -> Seen:
        """What the model is sent after it."""
        calls = 0
        self.model.requests.clear()
        self.inner.requests.clear()
        if isinstance(step, tuple):
            calls = len(step)
            inside = [use for use in step if isinstance(use, Delegate)]
            self.inner.answers = [[user_call(use)] for one in inside for use in one.calls]
            self.model.answers = [
                [("worker", {"request": "look"}) if isinstance(use, Delegate) else user_call(use) for use in step]
            ]
        elif isinstance(step, Clear):
            self.cleared += 1
        elif isinstance(step, Rewind):
            await self.go_back(step.calls)
        elif isinstance(step, Worker):
            self.runner = self.runners.setdefault(step.number, self.worker())
        if isinstance(step, Compact):
            self.summed_up = len(await self.events()) or 1
        said = types.Content(role="user", parts=[types.Part(text="go on")])
        async for event in self.runner.run_async(user_id="me", session_id=self.session.id, new_message=said):
            where = event.invocation_id
        self.invocations.append((calls, where))
        return seen(self.model.requests[-1], calls, self.inner.requests)

    def worker(self) -> Any:
        """A runner in a process of its own, with the same sessions."""
        first = self.runners[0]
        shortens = ContextFilterPlugin(custom_filter=self.shorten)
        more = {"session_service": first.session_service, "plugins": [shortens, *self.elsewhere()]}
        return Runner(app_name="app", agent=first.agent, **more)

    async def events(self) -> list[Any]:
        """Those of the conversation."""
        now = await self.runner.session_service.get_session(app_name="app", user_id="me", session_id=self.session.id)
        return list(now.events)

    async def go_back(self, calls: int) -> None:
        """The last calls never happened."""
        while calls > 0:
            made, where = self.invocations.pop()
            calls -= made
        before: dict[str, Any] = {"user_id": "me", "session_id": self.session.id}
        await self.runner.rewind_async(rewind_before_invocation_id=where, **before)


def seen(request: list[Content], calls: int, inner: list[list[Content]]) -> Seen:
    """A request in the suite's words."""
    parts = [part for content in request for part in content.parts]
    results = [part for part in parts if part.function_response][-calls:] if calls else []
    texts = tuple(text_of(part) for part in parts if not any(part is result for result in results))
    return Seen(texts, tuple(map(text_of, results)), tuple(seen(one, 1, []) for one in inner[1:]))


def text_of(part: Any) -> str:
    """What a model reads there."""
    if part.function_response:
        return str(part.function_response.response.get("result"))
    if part.function_call:
        return "\n".join(map(str, part.function_call.args.values()))
    return part.text or ""


class TestGoogleADK(Conformance):
    host = AdkHost()


def test_behind_the_plugin_nothing_may_shorten_what_is_sent(tmp_path: Path) -> None:
    """Why the page says that the plugin is the last of the list."""
    make_project(tmp_path / "p")
    steps: list[Step] = [(Bash("cat shop.py"),), (Bash("head -40 shop.py"),), Clear()]
    plugin = ReadcachePlugin(str(tmp_path / "p"))
    right = asyncio.run(Conversation(tmp_path / "p", [plugin]).converse(steps))
    assert not [marker for text in right[2].texts for marker in markers(text) if "GONE" not in marker]
    plugin = ReadcachePlugin(str(tmp_path / "p"))
    wrong = asyncio.run(Conversation(tmp_path / "p", [plugin], are_last=False).converse(steps))
    assert [marker for text in wrong[2].texts for marker in markers(text) if "GONE" not in marker]


def test_events_of_the_conversation_are_not_changed_by_what_is_sent(tmp_path: Path) -> None:
    make_project(tmp_path / "p")
    plugin = ReadcachePlugin(str(tmp_path / "p"))
    talk = Conversation(tmp_path / "p", [plugin])

    async def run_steps() -> tuple[list[str], list[str]]:
        await talk.converse([(Bash("cat shop.py"),), (Bash("head -40 shop.py"),)])
        before = [str(event.content) for event in await talk.events()]
        await talk.step(Clear())
        return before, [str(event.content) for event in await talk.events()]

    before, after = asyncio.run(run_steps())
    assert after[: len(before)] == before


def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    def run_steps(root: Path, on: bool) -> int:
        talk = Conversation(root, [ReadcachePlugin(str(root))] if on else [])
        sent: list[Any] = []

        async def converse() -> None:
            await talk.converse([])
            for step in STEPS:
                await talk.step(step)
                sent.extend(part for request in talk.model.requests for content in request for part in content.parts)

        asyncio.run(converse())
        return sum(len(text_of(part)) for part in sent if part.function_response)

    measure("google-adk", "google-adk", run_steps, tmp_path)


class Counting(Script):
    """A model whose provider counts its requests."""

    model: str = MODEL
    provider: Any = None

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[Any]:
        """What the model says next, and the size of the request."""
        parts = [part for content in llm_request.contents for part in content.parts]
        calls = [part.function_call.id for part in parts if part.function_call]
        answered = [part.function_response.id for part in parts if part.function_response]
        command = self.provider.command([*map(text_of, parts)], calls, answered)
        self.answers = [[("bash", {"command": command})]] if command else []
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=self.provider.sizes[-1])
        async for response in super().generate_content_async(llm_request, stream):
            yield response.model_copy(update={"usage_metadata": usage})


def test_results_are_cleared_before_a_window_is_full(tmp_path: Path) -> None:
    model, plugin = Counting(provider=Provider(tmp_path)), ReadcachePlugin(str(tmp_path), clear=MARKS)
    agent = LlmAgent(name="coder", model=model, tools=[*user_tools(tmp_path)])
    runner = InMemoryRunner(agent=agent, app_name="window", plugins=[plugin])

    async def run() -> None:
        await runner.session_service.create_session(app_name="window", user_id="u", session_id="s")
        asked = types.Content(role="user", parts=[types.Part(text="go on")])
        async for _ in runner.run_async(user_id="u", session_id="s", new_message=asked):
            pass
        await plugin.close()

    asyncio.run(run())
    model.provider.check()


def test_the_lines_of_the_page_switch_it_on(tmp_path: Path) -> None:
    make_project(tmp_path / "p")
    (plugin,) = switched_on("readcache.hosts.google_adk", tmp_path / "p").plugins
    talk = Conversation(tmp_path / "p", [plugin])
    *_, last = asyncio.run(talk.converse([(Bash("cat shop.py"),), (Bash("cat shop.py"),)]))
    assert markers(last.results[0])
    assert plugin.stats()["calls"] == 2
    asyncio.run(plugin.close())


def test_settings_are_those_of_every_adapter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def kept(plugin: ReadcachePlugin) -> Any:
        return plugin._lists._settings.policy, plugin._lists._settings.store

    check_settings(ReadcachePlugin, kept, monkeypatch, tmp_path)
