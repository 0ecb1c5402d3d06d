"""A conversation as one text, for reading only: a model cannot continue it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from readcache.core.messages.blocks import RESULT_ROLES, Raw
from readcache.core.messages.messages import Kind, Message, normalise

# The headers that a reader knows. Lines like them are quoted even if no message has the role.
_HEADERS = ("system", "developer", "user", "assistant", "tool_output", "tool_output error")


def serialize_transcript(messages: Sequence[Raw | Message]) -> str:
    """Return the flat transcript; "" if there are no messages.

    Each message begins with a line that has its role: `[system]`, `[user]`, `[assistant]`, `[tool_output]`
    (`[tool_output error]`), or any other name that the message has. Its text follows. A call is a line such as `->
    tool_call name({"command": "ls"})`. An image is only mentioned, and thinking is omitted. No line of a message can be
    mistaken for a role line.
    """
    normal = normalise(messages)
    headers = {*_HEADERS, *map(_header, normal)}
    ours = "|".join(rf"\[{re.escape(header)}\]$" for header in sorted(headers))
    own_lines = re.compile(rf"^(?={ours}|-> tool_call )", re.MULTILINE)
    return "\n".join(block for message in normal for block in _blocks(message, own_lines))


def _blocks(message: Message, own_lines: re.Pattern[str]) -> Iterator[str]:
    said: list[str] = []
    results: list[str] = []
    for part in message.parts:
        # A line that looks like one of the transcript's own lines is indented by a space.
        quoted = own_lines.sub(" ", part.text.removesuffix("\n"))
        if part.kind is Kind.RESULT:
            results.append(f"[tool_output{' error' if part.is_error else ''}]\n{quoted}")
        elif part.kind is Kind.IMAGE and results:
            results[-1] += "\n(an image)"
        elif part.kind is Kind.IMAGE:
            said.append("(an image)")
        elif part.kind is Kind.CALL:
            given = part.text if part.arguments is None else json.dumps(part.arguments, ensure_ascii=False, default=str)
            said.append(f"-> tool_call {' '.join(part.name.split())}({' '.join(given.splitlines())})")
        elif part.kind is not Kind.THINKING:
            said.append(quoted)
    yield from results
    if said or not results:
        yield "\n".join([f"[{_header(message)}]", *filter(None, said)])


def _header(message: Message) -> str:
    return "tool_output" if message.role in RESULT_ROLES else " ".join(message.role.split())
