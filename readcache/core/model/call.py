"""One tool call and its output, as judging sees them.

A host may put a frame around the real output of a tool: a status line, a header, terminal controls. `framed` removes
it before judging, and `with_frame` adds it to the reply.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from readcache.core.model.claims import ANY_SEPARATOR, OPAQUE, FileLines, Reading
from readcache.core.model.paths import canonical_path
from readcache.core.model.reply import Reason, Reply, Shown
from readcache.core.model.text import digest, printable
from readcache.core.model.tool_call import AskedRead, Framing, ToolCall

# Names of the two tools in reports. Hosts have their own names for them.
BASH, READ = "bash", "read"
MADE_UP_ID = "rc-"  # start of the ID of a call that the session named, because the harness gave no ID
# Characters shown of a command that printed a source. The contract aims at 130 for a marker. tests/benchmarks/README.md
# has the lengths over the recorded sessions.
LABEL_CHARS = 40

_TOOLS = ("read", "write")  # first words of the labels of reads and writes by a tool
_SPAN = re.compile(r" (\d+-\d*)$")


@dataclass(frozen=True)
class Call:
    """A call that has finished. `reading` is the guess from its command: what it prints and writes."""

    call_id: str
    label: str  # the command, or "read PATH 5-30" for a read tool; markers shorten it
    request: str  # equal for equal requests
    output: str
    reading: Reading
    exit_code: int | None = 0  # None: unknown
    batch: str = ""  # parallel calls share it
    skip_reason: Reason | None = (
        None  # TIMED_OUT, KILLED, NOT_RUN, UNREADABLE, UNSTABLE, NEVER: not judged, not credited
    )
    fresh: bool = False  # the reader requested every byte
    started: int = -1  # number of the last call that was logged when this one started; -1: unknown
    complete: bool = True  # False: the tool truncated the output or timed out
    uncut: bool = False  # readcache ran the command, so nobody can have truncated its output
    exact: bool = False  # readcache read the file, so the output is lines of the file and nothing else
    edges_only: bool = False  # only the whole output, its beginning or its end may be omitted
    tool: str = ""  # its name in reports: "bash", "read", or the host's name for another tool
    head: str = ""  # the host's text before the output: passed on, never judged
    tail: str = ""  # the host's text after the output
    leads_to: frozenset[str] = frozenset()  # the targets of links that its text names, if a disk was asked

    @property
    def rendering(self) -> str:
        """The way in which the output shows lines of files. Each tool has its own: a host's read tool may remove
        carriage returns, truncate long lines, or show a notebook as cells. A shell command prints the file's bytes."""
        return BASH if self.exact else self.tool

    @cached_property
    def digest(self) -> str:
        """The digest of the output, computed at most once."""
        return digest(self.output)


def make_request(*parts: str | int | bool | None) -> str:
    """Return a name for a request. Equal parts give equal names."""
    return digest(json.dumps(parts))


def command_call(
    call_id: str,
    command: str,
    cwd: str,
    output: str,
    reading: Reading,
    *,
    exit_code: int | None = 0,
    batch: str = "",
    skip_reason: Reason | None = None,
) -> Call:
    """Return the call of a bash command that ran in the directory `cwd`."""
    request = make_request(command, cwd)
    return Call(call_id, command, request, output, reading, exit_code, str(batch), skip_reason, tool=BASH)


def read_call(
    call_id: str,
    key: str,
    output: str,
    start: int,
    end: int | None,
    *,
    sep: str | None = None,
    likely: str = "",
) -> Call:
    """Return the call that read lines `start` to `end` (1-based, inclusive; None: to the end) of the file `key`. `sep`:
    the separator after printed line numbers; None if there are none. `likely`: see `FileLines`."""
    start, end = int(start), None if end is None else int(end)
    request, reading = _read_claim(key, start, end, sep, likely)
    return Call(call_id, _read_label(key, start, end), request, output, reading, tool=READ)


def other_call(told: ToolCall, call_id: str, root: str) -> Call:
    """Return the call of a tool that is not a shell. `root`: the directory of relative paths.

    If a read prints line numbers, their form is found from the output. It is unknown what any other tool prints and
    whether it only reads.
    """
    if isinstance(told.asked, AskedRead):
        key, numbered = canonical_path(told.asked.path, root), told.asked.numbered
        sep, likely = ANY_SEPARATOR if numbered else None, numbered if isinstance(numbered, str) else ""
        call = read_call(call_id, key, told.output, told.asked.start, told.asked.end, sep=sep, likely=likely)
        call = replace(call, complete=told.complete, edges_only=told.asked.edges_only)
        return replace(call, exit_code=1, skip_reason=Reason.UNREADABLE) if told.is_error else call
    name, given = told.name, told.arguments
    given = given if isinstance(given, str) else json.dumps(given, default=str, ensure_ascii=False)
    label = f"{name} {given}" if told.arguments else name
    return Call(call_id, label, make_request("tool", name, given), told.output, OPAQUE, None, tool=name)


def split_tool(label: str) -> tuple[str, str, str]:
    """Split `read /w/app.py 5-30` into tool, path and lines. All three are empty for a command."""
    tool, _, path = label.partition(" ")
    if tool not in _TOOLS or not path.startswith(("/", "~")):
        return "", "", ""
    span = _SPAN.search(path)
    return (tool, path[: span.start()], span[1]) if span else (tool, path, "")


@lru_cache(maxsize=256)
def shown_label(label: str) -> str:
    """Return the command as a marker shows it: shortened in the middle if it is too long or has several lines.

    Return the label of a read or write by a tool as it is, because a marker has other words for it.
    """
    if split_tool(label)[0]:
        return label
    first, _, rest = label.strip().partition("\n")
    last = rest.rsplit("\n", 1)[-1] if rest else first
    if not rest and len(first) <= LABEL_CHARS:
        return printable(first)
    tail = min(len(last), LABEL_CHARS * 2 // 3)  # the end of a command says more than a `cd` in front of it
    head = min(len(first), LABEL_CHARS - tail - 1)
    return printable(first[:head] + "…" + last[len(last) - tail :])


def _read_label(key: str, start: int, end: int | None) -> str:
    return f"read {key}" if (start, end) == (1, None) else f"read {key} {start}-{end or ''}"


@lru_cache(maxsize=256)
def _read_claim(key: str, start: int, end: int | None, sep: str | None, likely: str) -> tuple[str, Reading]:
    """Return the name of the request and its claim. A repeated read gets the same objects."""
    claim = FileLines((key,), (max(1, start), end), sep, likely=likely)
    return make_request(key, start, end, sep is not None), Reading((claim,))


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


_REMINDER = "<system-reminder>"
_REMINDERS = re.compile(rf"(?:\s*{_REMINDER}(?:(?!</system-reminder>).)*</system-reminder>)+\s*", re.DOTALL)
_STARTS_WITH_NUMBER = re.compile(r"\s*[\[L]?[0-9]+(?![0-9])")


def without_reminders(text: str) -> tuple[str, str, str]:
    """Return (head, body, tail) of a read that prints line numbers. Reminders at its end, which have no number, come
    from the host and not from the file."""
    at = text.find(f"\n{_REMINDER}") + 1
    body = text[:at].rstrip("\n") + "\n"
    last = body[body.rfind("\n", 0, -1) + 1 :]
    if not at or not _STARTS_WITH_NUMBER.match(last) or not _REMINDERS.fullmatch(text, at):
        return "", text, ""
    return "", body, text[len(body) :]


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
