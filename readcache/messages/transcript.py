"""A conversation as one text: for somebody who reads it, not for somebody who goes on with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from readcache.messages.messages import RESULT_ROLES, Kind, Message, Part, Raw, normalise


def serialize_transcript(messages: Sequence[Raw | Message]) -> str:
    """The flat transcript: a line with the role, `[system]`, `[user]`, `[assistant]`, `[tool_output]` (`[tool_output
    error]`), or whatever else it is called, and what was said below; calls as `-> tool_call name({"command": "ls"})`.

    Of an image only the fact that it was there is told, of thinking nothing. No line of a message can pass for one of
    these. "" for no messages.
    """
    return _Transcript(normalise(messages)).text()


class _Transcript:
    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages
        headers = {"tool_output", "tool_output error", *map(_header, messages)}
        ours = "|".join(rf"\[{re.escape(header)}\]$" for header in sorted(headers))
        self._ours = re.compile(rf"^(?={ours}|-> tool_call )", re.MULTILINE)

    def text(self) -> str:
        return "\n".join(block for message in self._messages for block in self._blocks(message))

    def _blocks(self, message: Message) -> Iterator[str]:
        said: list[str] = []
        results: list[str] = []
        for part in message.parts:
            if part.kind is Kind.RESULT:
                results.append(f"[tool_output{' error' if part.is_error else ''}]\n{self._quoted(part.text)}")
            elif part.kind is Kind.IMAGE and results:
                results[-1] += "\n(an image)"
            elif part.kind is not Kind.THINKING:
                said.append(self._line(part))
        yield from results
        if said or not results:
            yield "\n".join([f"[{_header(message)}]", *filter(None, said)])

    def _line(self, part: Part) -> str:
        if part.kind is Kind.CALL:
            given = part.text if part.arguments is None else json.dumps(part.arguments, ensure_ascii=False, default=str)
            return f"-> tool_call {' '.join(part.name.split())}({' '.join(given.splitlines())})"
        return "(an image)" if part.kind is Kind.IMAGE else self._quoted(part.text)

    def _quoted(self, text: str) -> str:
        """A line that looks like one of the transcript's own is moved in by a space."""
        return self._ours.sub(" ", text.removesuffix("\n"))


def _header(message: Message) -> str:
    return "tool_output" if message.role in RESULT_ROLES else " ".join(message.role.split())
