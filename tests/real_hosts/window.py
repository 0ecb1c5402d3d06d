"""A conversation that grows by reads of real files until old results are cleared, in a window of 200,000 tokens.

The scripted provider counts as a newer Claude does: two characters a token, and instructions and tools that no message
has. So neither the messages alone nor the characters of another model show when the window is full.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from readcache import Marks
from readcache.testing.requests import NOTE
from tests.real_hosts.chat_api import Json, ScriptedModel, texts_of

MODEL, CHARS_PER_TOKEN, INSTRUCTIONS = "claude-opus-5", 2.0, 30_000
WINDOW = 200_000
MARKS = Marks.of_window(WINDOW)
_LINES, _MORE = 150, 4  # lines of each file; requests after the clearing


class Provider:
    """A provider that counts each request. Its model reads a new file in each turn."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.sizes: list[int] = []  # tokens of each request
        self.notes: list[int] = []  # notes of cleared results in each request

    def command(self, texts: Sequence[str], calls: Sequence[str], answered: Sequence[str]) -> str:
        """Return the model's next command, or "" at the end. `texts`: everything that the model is sent. `calls`,
        `answered`: the IDs of all calls, and of all results."""
        assert [*calls] == [*answered], "each call has one result, in order"
        self.sizes.append(INSTRUCTIONS + math.ceil(sum(map(len, texts)) / CHARS_PER_TOKEN))
        self.notes.append(sum(len(NOTE.findall(text)) for text in texts))
        assert self.sizes[-1] < WINDOW, "the request does not fit into the window"
        if self.is_done:
            return ""
        return self.read(len(self.sizes))

    def read(self, number: int) -> str:
        """Write a file, and return the command that reads it."""
        lines = (f"def step_{n}_of_part_{number}(value: int) -> int:  # adds {n}\n" for n in range(_LINES))
        (self._root / f"part_{number}.py").write_text("".join(lines))
        return f"cat part_{number}.py"

    @property
    def is_done(self) -> bool:
        """True if enough requests were made after the clearing."""
        return sum(map(bool, self.notes)) > _MORE

    @property
    def fired(self) -> int:
        """The index of the first request with cleared results."""
        return next(index for index, count in enumerate(self.notes) if count)

    def check(self, *, is_exact: bool = True) -> None:
        """Check when results were cleared, and how far. `is_exact`: the host passes the provider's count."""
        before, after = self.sizes[self.fired - 1], self.sizes[self.fired]
        one_read = self.sizes[1] - self.sizes[0] + 100
        print(f"cleared after a request of {before:,} tokens: {after:,} are left, {self.notes[self.fired]} notes")
        if is_exact:
            assert MARKS.above - one_read < before <= MARKS.above
            assert after <= MARKS.down_to + one_read
        assert after < before * 0.9
        assert self.notes[self.fired :] == [self.notes[self.fired]] * (_MORE + 1), "nothing more is cleared at once"


class ChatProvider(ScriptedModel):
    """The same behind OpenAI's chat API. `tool`: the host's shell."""

    def __init__(self, root: Path, tool: str) -> None:
        super().__init__()
        self.provider, self._tool = Provider(root), tool

    def _answer(self, request: Json) -> Json:
        messages = request["messages"]
        calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
        results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        command = self.provider.command([text for _, text in texts_of(messages)], calls, results)
        self.says(*([self.call(self._tool, {"command": command})] if command else []), text="" if command else "Done.")
        answer = super()._answer(request)
        return {**answer, "usage": {**answer["usage"], "prompt_tokens": self.provider.sizes[-1]}}
