"""OpenHands as the conformance suite drives it: real agent, real tools, real condenser, a scripted model over HTTP."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from openhands.sdk import LLM, Agent, Tool
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.sdk.conversation.impl.local_conversation import LocalConversation
from openhands.sdk.event import ActionEvent
from openhands.tools.file_editor import FileEditorTool
from openhands.tools.terminal import TerminalTool

from readcache import Marks
from readcache.hosts.openhands import ReadcacheCondenser
from readcache.testing.hosts import Bash, Compact, Edit, Read, Rewind, Seen, Step
from tests.real_hosts.chat_api import Json, ScriptedModel, texts_of

CONTROLS = re.compile(r"\x1b\[\?2004[lh]")
SUMMARY = "SUMMARY: the shop was looked at."


def llm_of(model: ScriptedModel, usage: str = "agent", name: str = "fake") -> Any:
    return LLM(model=f"openai/{name}", api_key="none", base_url=model.url, usage_id=usage, num_retries=0)


def conversation_in(root: Path, model: ScriptedModel, *, on: bool, terminal: str = "subprocess", **ours: Any) -> Any:
    """A conversation with the terminal and the editor. `ours`: settings of our condenser; "inner" is the user's."""
    inner = ours.pop("inner", None) or LLMSummarizingCondenser(
        llm=llm_of(model, "condenser"), max_size=200, keep_first=1
    )
    llm = llm_of(model, name=ours.pop("model_name", "fake"))
    more = {name: ours.pop(name) for name in ("persistence_dir", "conversation_id") if name in ours}
    condenser = ReadcacheCondenser(inner=inner, root=str(root), **ours) if on else inner
    tools = [Tool(name=TerminalTool.name, params={"terminal_type": terminal}), Tool(name=FileEditorTool.name)]
    agent = Agent(llm=llm, tools=tools, condenser=condenser, include_default_tools=["FinishTool"])
    return LocalConversation(agent, workspace=str(root), visualizer=None, stuck_detection=False, **more)


def call_of(model: ScriptedModel, root: Path, call: Bash | Read | Edit) -> Json:
    """A call of the host's own tool."""
    if isinstance(call, Bash):
        more = {"timeout": call.timeout} if call.timeout else {}
        return model.call("terminal", {"command": call.command, **more})
    path = str(root / call.path)
    if isinstance(call, Edit):
        return model.call(
            "file_editor", {"command": "str_replace", "path": path, "old_str": call.old, "new_str": call.new}
        )
    ranged = {} if (call.start, call.end) == (1, None) else {"view_range": [call.start, call.end or -1]}
    return model.call("file_editor", {"command": "view", "path": path, **ranged})


def ask(conversation: Any, model: ScriptedModel, *batches: Sequence[Json]) -> None:
    """The user says something; the model makes these calls, a list at once; the last request has all results in it."""
    for calls in batches:
        model.says(*calls)
    model.says(text="Done.")
    conversation.send_message("Go on.")
    conversation.run()


class OpenHandsHost:
    """`terminal`: which of its backends; `ours`: settings of our condenser."""

    can: frozenset[type] = frozenset((Bash, Read, Edit, Compact, Rewind))

    def __init__(self, terminal: str = "subprocess", **ours: Any) -> None:
        self.terminal, self.ours = terminal, ours
        self.store: Path | None = None
        self.clear: Marks | None = None

    def normal(self, text: str) -> str:
        """Without what differs from run to run."""
        return re.sub(r"/\S*/(?:with|without)\b", "ROOT", CONTROLS.sub("", text))

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        kept = root.with_name(root.name + "-kept")
        shutil.copytree(root, kept)
        for _ in range(4):
            seen = self._converse(root, steps, on=on)
            if not is_lost(*(result for one in seen for result in one.results)):
                break
            shutil.rmtree(root)
            shutil.copytree(kept, root)
        return seen

    def _converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        with ScriptedModel(summary=SUMMARY) as model:
            ours = {**self.ours, "clear": self.clear, **({"store": str(self.store)} if self.store else {})}
            conversation = conversation_in(root, model, on=on, terminal=self.terminal, **ours)
            try:
                return [self._seen(conversation, model, root, step) for step in steps]
            finally:
                conversation.close()

    def _seen(self, conversation: Any, model: ScriptedModel, root: Path, step: Step) -> Seen:
        count = 0
        if isinstance(step, tuple):
            calls = [call for call in step if isinstance(call, (Bash, Read, Edit))]
            count = len(calls)
            ask(conversation, model, [call_of(model, root, call) for call in calls])
        else:
            if isinstance(step, Compact):
                conversation.condense()
            elif isinstance(step, Rewind):
                conversation.navigate_to(_before(conversation, step.calls))
            ask(conversation, model)
        texts = tuple(self.normal(text) for _, text in texts_of(model.requests[-1]))
        results = [self.normal(text) for text in _merged(model.requests[-1])]
        return Seen(texts, tuple(results[len(results) - count :]))


def is_lost(*results: str) -> bool:
    """On a busy machine the host's terminal now and then takes an echo, or the output before it, for the output."""
    return any(re.match(r"\s*\n(?!\[The command)|\[Previous command outputs", CONTROLS.sub("", r)) for r in results)


def _merged(messages: list[Json]) -> list[str]:
    """The results, one text each."""
    return ["\n".join(text for _, text in texts_of([m])) for m in messages if m["role"] == "tool"]


def _before(conversation: Any, calls: int) -> str | None:
    """The event before the last so many calls: what the user had said before them."""
    events = list(conversation.state.view.events)
    wanted = [at for at, event in enumerate(events) if isinstance(event, ActionEvent)][-calls]
    return str(events[wanted - 2].id)
