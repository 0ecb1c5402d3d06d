"""What a host puts around the real output of a tool: a status line, a header, terminal controls."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from readcache.core.model.call import Call
from readcache.core.model.reply import Reply, Shown
from readcache.core.model.tool_call import Framing

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Frame:
    """The first `head` and the last `tail` lines of a result are the host's.

    Called with the text it gives (head, body, tail), as a function of your own may: joined, they are the text again.
    """

    head: int = 0
    tail: int = 0

    def __call__(self, text: str) -> tuple[str, str, str]:
        """(head, body, tail) of the text."""
        lines = _LINE.findall(text)
        end = max(self.head, len(lines) - self.tail)
        return "".join(lines[: self.head]), "".join(lines[self.head : end]), "".join(lines[end:])


def framed(call: Call, frame: Framing | None) -> Call:
    """The call without the frame around its output. If the frame cannot be removed, no line has a known number."""
    if frame is None:
        return call
    try:
        head, body, tail = frame(call.output)
        if head + body + tail == call.output:
            end = len(body) if not tail or body.endswith("\n") else _end_of_lines(body, tail)
            split = len(head) + end
            return replace(call, output=call.output[len(head) : split], head=head, tail=call.output[split:])
    except Exception:  # the agent's tool never sees what went wrong in a host's function
        pass
    return replace(call, complete=False)


def _end_of_lines(body: str, tail: str) -> int:
    """Where in the body its last whole line ends, which may be a newline that was counted as the tail's."""
    return len(body) + 1 if tail.startswith("\n") else body.rfind("\n") + 1


def with_frame(reply: Reply, call: Call) -> Reply:
    """The reply with the frame around it again."""
    if not call.head and not call.tail:
        return reply
    segments = (*([Shown(call.head)] if call.head else []), *reply.segments, *([Shown(call.tail)] if call.tail else []))
    full_text = call.head + reply.full_text + call.tail
    return replace(reply, text=call.head + reply.text + call.tail, segments=segments, full_text=full_text)
