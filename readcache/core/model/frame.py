"""The frame that a host puts around the real output of a tool: a status line, a header, terminal controls."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from readcache.core.model.call import Call
from readcache.core.model.reply import Reply, Shown
from readcache.core.model.tool_call import Framing

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of whole lines: the host wrote the first `head` and the last `tail` lines of a result.

    It is a callable that splits a text into (head, body, tail). A function of your own can replace it if the three
    parts, joined, are the text again.
    """

    head: int = 0
    tail: int = 0

    def __call__(self, text: str) -> tuple[str, str, str]:
        """Return (head, body, tail) of the text."""
        lines = _LINE.findall(text)
        end = max(self.head, len(lines) - self.tail)
        return "".join(lines[: self.head]), "".join(lines[self.head : end]), "".join(lines[end:])


def framed(call: Call, frame: Framing | None) -> Call:
    """Return the call without the frame around its output. If the frame cannot be removed, mark the output as
    incomplete, so that none of its lines has a known number."""
    if frame is None:
        return call
    try:
        head, body, tail = frame(call.output)
        if head + body + tail == call.output:
            end = len(body) if not tail or body.endswith("\n") else _end_of_lines(body, tail)
            split = len(head) + end
            return replace(call, output=call.output[len(head) : split], head=head, tail=call.output[split:])
    except Exception:  # the agent's tool must not fail because a host's function failed
        pass
    return replace(call, complete=False)


def _end_of_lines(body: str, tail: str) -> int:
    """Return the index in `body` + `tail` at which the last whole line of the body ends. The newline that ends this
    line may be the first character of the tail."""
    return len(body) + 1 if tail.startswith("\n") else body.rfind("\n") + 1


def with_frame(reply: Reply, call: Call) -> Reply:
    """Return the reply with the frame around it again."""
    if not call.head and not call.tail:
        return reply
    segments = (*([Shown(call.head)] if call.head else []), *reply.segments, *([Shown(call.tail)] if call.tail else []))
    full_text = call.head + reply.full_text + call.tail
    return replace(reply, text=call.head + reply.text + call.tail, segments=segments, full_text=full_text)
