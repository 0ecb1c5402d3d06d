"""Agents of LangChain whose model follows a script, as the conformance suite drives them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HostExecutionPolicy,
    ShellToolMiddleware,
    SummarizationMiddleware,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from readcache import Marks, Policy
from readcache.hosts.langchain import ReadcacheMiddleware
from readcache.testing.hosts import Bash, Clear, Compact, Edit, Read, Rewind, Seen, Step, ToolUse, Worker
from tests.real_hosts.measured_script import STEPS

_numbers = count(1)


class Script(BaseChatModel):  # type: ignore[misc]  # no types here
    """A model that says what is in `answers`, and keeps what it was sent."""

    answers: list[AIMessage] = Field(default_factory=list)
    requests: list[list[BaseMessage]] = Field(default_factory=list)

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        """It needs no tools to be told."""
        return self

    @property
    def _llm_type(self) -> str:
        return "script"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.requests.append([message.model_copy(deep=True) for message in messages])
        answer = self.answers.pop(0) if self.answers else AIMessage("done")
        return ChatResult(generations=[ChatGeneration(message=answer)])


def says(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    """The model makes these calls at once."""
    made = [{"name": name, "args": args, "id": f"call-{next(_numbers)}", "type": "tool_call"} for name, args in calls]
    return AIMessage("", tool_calls=made)


def text_of(message: BaseMessage) -> str:
    """What a model reads of it."""
    calls = [str(list(call["args"].values())) for call in getattr(message, "tool_calls", ())]
    return "\n".join([str(message.text), *calls])


class Clearing:
    """A context edit: the oldest results are cleared, as many as `cleared`."""

    def __init__(self) -> None:
        self.cleared = 0

    def apply(self, messages: list[Any], *, count_tokens: Any) -> None:
        """Clears them in the list."""
        results = sum(isinstance(message, ToolMessage) for message in messages)
        if self.cleared:
            edit = ClearToolUsesEdit(trigger=-1, keep=max(0, results - self.cleared))
            edit.apply(messages, count_tokens=count_tokens)


class LangChainHost:
    """create_agent with tools of the user."""

    can: frozenset[type] = frozenset((Bash, Read, Edit, Compact, Clear, Rewind, Worker))
    store: Path | None = None
    clear: Marks | None = None
    names = ("bash", "read_file", "edit_file")

    def __init__(self, policy: str = "default", **options: Any) -> None:
        self.policy, self.options = Policy.named(policy), options

    def normal(self, text: str) -> str:
        """Without the directory of the project, which is another one without readcache."""
        return re.sub(r"/with(?:out)?(?=/)", "", text)

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        store = None if self.store is None else str(self.store)
        if any(isinstance(step, Worker) for step in steps):  # they share a store
            store = str(root.parent / "workers.db")

        def ours() -> list[Any]:
            given: dict[str, Any] = {"store": store, "policy": self.policy, "clear": self.clear, **self.options}
            return [ReadcacheMiddleware(str(root), **given)] if on else []

        return Conversation(self, root, ours).converse(steps)

    def agent(self, talk: Conversation, root: Path, ours: list[Any]) -> Any:
        """The agent that is talked to."""
        summary = SummarizationMiddleware(
            Script(answers=[AIMessage("what came before")] * 9),
            trigger=("tokens", 1000),
            keep=("messages", 1),
            token_counter=talk.count_tokens,
        )
        middleware = [summary, ContextEditingMiddleware(edits=[talk.clearing]), *self.shell(root), *ours]
        return create_agent(talk.model, self.tools(root), middleware=middleware, checkpointer=talk.saver)

    def shell(self, _root: Path) -> list[Any]:
        """More middleware."""
        return []

    def tools(self, root: Path) -> list[Any]:
        """Tools as users write them."""

        def bash(command: str, timeout: float | None = None) -> str:
            """Runs a command."""
            try:
                ran = subprocess.run(
                    ["bash", "-c", command], cwd=root, timeout=timeout, text=True, stdout=-1, stderr=-2, check=False
                )
            except subprocess.TimeoutExpired:
                return "Error: the command ran out of time."
            return ran.stdout if not ran.returncode else f"{ran.stdout}\nExit code: {ran.returncode}"

        def read_file(path: str, start_line: int = 1, end_line: int | None = None) -> str:
            """Reads lines of a file."""
            try:
                lines = (root / path).read_text().splitlines()[start_line - 1 : end_line]
            except OSError as error:
                raise ToolException(f"cannot read {path}") from error
            return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, start_line))

        def edit_file(path: str, old: str, new: str) -> str:
            """Changes a text in a file."""
            (root / path).write_text((root / path).read_text().replace(old, new, 1))
            return "edited"

        tools = [tool(each) for each in (bash, read_file, edit_file)]
        for each in tools:
            each.handle_tool_error = True
        return tools

    def call(self, use: ToolUse, _talk: Conversation) -> tuple[str, dict[str, Any]]:
        """The call of a tool."""
        shell, read, edit = self.names
        if isinstance(use, Bash):
            return shell, {"command": use.command} | ({"timeout": use.timeout} if use.timeout else {})
        if isinstance(use, Read):
            return read, {"path": use.path, "start_line": use.start, "end_line": use.end}
        assert isinstance(use, Edit)
        return edit, {"path": use.path, "old": use.old, "new": use.new}


class ShellHost(LangChainHost):
    """create_agent with LangChain's own shell."""

    can = frozenset((Bash, Compact, Clear, Rewind))
    names = ("shell", "", "")

    def shell(self, root: Path) -> list[Any]:
        """The shell tool is a middleware's."""
        return [
            ShellToolMiddleware(
                root, execution_policy=HostExecutionPolicy(command_timeout=1.5, termination_timeout=0.2)
            )
        ]

    def tools(self, _root: Path) -> list[Any]:
        """No others."""
        return []

    def call(self, use: ToolUse, _talk: Conversation) -> tuple[str, dict[str, Any]]:
        """The call of the shell, which takes no timeout, and which `exit` would end."""
        assert isinstance(use, Bash)
        return "shell", {"command": use.command.replace("exit 3", "(exit 3)")}


class Conversation:
    """One thread."""

    def __init__(self, host: LangChainHost, root: Path, ours: Callable[[], list[Any]]) -> None:
        self.host, self.root, self.saver = host, root, InMemorySaver()
        self.model, self.worker = Script(), Script()
        self.clearing, self.is_full = Clearing(), False
        self.agent = host.agent(self, root, ours())
        self.ours, self.agents = ours, {0: self.agent}
        self.config: Any = {"configurable": {"thread_id": "one"}, "recursion_limit": 1000}
        self.past: list[tuple[int, Any]] = []  # calls so far, and where the thread was then

    def count_tokens(self, _: Any, **__: Any) -> int:
        """So many that a summary is due, or none."""
        return 10_000 if self.is_full else 0

    def converse(self, steps: Sequence[Step]) -> list[Seen]:
        """One `Seen` for each step."""
        return [self.step(step) for step in steps]

    def step(self, step: Step) -> Seen:
        """What the model is sent after it."""
        calls = [self.host.call(use, self) for use in step] if isinstance(step, tuple) else []
        if calls:
            self.model.answers = [says(*calls)]
        elif isinstance(step, Clear):
            self.clearing.cleared += 1
        elif isinstance(step, Rewind):
            made = self.past[-1][0] - step.calls
            self.config = next(config for number, config in self.past if number == made)
        elif isinstance(step, Worker):
            if step.number not in self.agents:
                self.agents[step.number] = self.host.agent(self, self.root, self.ours())
            self.agent = self.agents[step.number]
        self.is_full = isinstance(step, Compact)
        before = len(self.worker.requests)
        try:
            self.agent.invoke({"messages": [("user", "go on")]}, self.config)
        finally:
            self.is_full = False
        made = (self.past[-1][0] if self.past else 0) + len(calls)
        if isinstance(step, Rewind):
            made = self.past[-1][0] - step.calls
        thread = {"configurable": {"thread_id": "one"}}
        self.config = {**self.agent.get_state(thread).config, "recursion_limit": 1000}
        self.past.append((made, self.config))
        return self.seen(self.model.requests[-1], len(calls), self.worker.requests[before:])

    def seen(self, request: list[BaseMessage], calls: int, inner: list[list[BaseMessage]]) -> Seen:
        """A request in the suite's words."""
        results = [message for message in request if isinstance(message, ToolMessage)][-calls:] if calls else []
        texts = tuple(text_of(message) for message in request if message not in results)
        inside = tuple(self.seen(one, 1, []) for one in inner[1:])  # the first asks for a call
        return Seen(texts, tuple(str(message.text) for message in results), inside)


def run_steps(host: LangChainHost, root: Path, *, on: bool) -> int:
    """Holds the conversation that is measured; gives the characters of all results in all requests."""
    talk = Conversation(host, root, lambda: [ReadcacheMiddleware(str(root))] if on else [])
    talk.converse(STEPS)
    return sum(len(text) for request in talk.model.requests for text in results(request))


def thread(name: str = "one") -> Any:
    """The settings of a run in that thread."""
    return {"configurable": {"thread_id": name}}


def results(messages: list[BaseMessage]) -> list[str]:
    """The texts of the results of tools."""
    return [str(message.text) for message in messages if isinstance(message, ToolMessage)]


def ask(agent: Any, config: Any = None) -> None:
    """A user's turn."""
    agent.invoke({"messages": [("user", "go on")]}, config)
