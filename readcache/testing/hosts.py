"""A host under test: the steps of its scripted model, and what that model was sent.

The steps include each way of reading a file and of reading it again. Each pair is one cell, with a file of its own.
`Conformance` tries every cell with the host, and counts the re-reads that its model was sent shortened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple, Protocol

LINES = 60
_PART, _HEAD = (16, 55), 45
_AT_ONCE = 12  # calls of a message
_AGAIN = 1 / 3  # the greatest share of the lines in view that may be repeated, as around a gap of a few lines


@dataclass(frozen=True, slots=True)
class Bash:
    """The model calls the host's shell tool."""

    command: str
    timeout: float | None = None  # seconds, where the host's tool takes one


@dataclass(frozen=True, slots=True)
class Read:
    """The model calls the host's read tool: lines 1-based, inclusive; `path` is relative to the project."""

    path: str
    start: int = 1
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """The model calls the host's edit tool."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Delegate:
    """The model starts a sub-agent whose model makes these calls, one a message."""

    calls: tuple[Bash | Read | Edit, ...]


@dataclass(frozen=True, slots=True)
class Compact:
    """The conversation is compacted: older messages become a summary."""


@dataclass(frozen=True, slots=True)
class Clear:
    """The host takes the text of the oldest tool result out of the conversation, and leaves its place."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """The user goes back: the last `calls` tool calls and everything after them never happened, files stay."""

    calls: int


@dataclass(frozen=True, slots=True)
class Worker:
    """The conversation goes on in another process: the steps from here on are served by adapter `number`, the first of
    which is 0. It has what the host keeps of the conversation, and a durable store if the adapter needs one for that;
    what another adapter has in memory it does not know."""

    number: int


ToolUse = Bash | Read | Edit | Delegate
# Calls that the model makes at once, in one message; or an event.
Step = tuple[ToolUse, ...] | Compact | Clear | Rewind | Worker


@dataclass(frozen=True, slots=True)
class Seen:
    """What the model was sent after a step, in the next request: every text in it, oldest first (system prompt, its own
    words and arguments of calls included), and which of them are the results of the step's calls. Leave out what the
    API drops because a server-side compaction stands after it. An event or a `Delegate` may have no results. A result
    that stands in JSON is given decoded, as lines."""

    texts: tuple[str, ...]
    results: tuple[str, ...] = ()
    inner: tuple[Seen, ...] = ()  # what a sub-agent's model was sent, a request each


class HostUnderTest(Protocol):
    """A host with a scripted model. `can`: the kinds of calls and events that it has (`Bash` at least).

    It may also have: `normal(text)`, which takes out of a result what differs from run to run (a process id, a
    duration); `store`, a path that the suite sets, where the adapter's durable store is to be while it is not None;
    `clear`, Marks that the suite sets, by which the adapter is to clear old results while they are not None;
    `cannot_shorten`, the names of the re-reads that the host leaves no way to shorten, by form (see `rereads`).
    """

    can: frozenset[type]

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """One conversation in the project `root`, from its beginning: a `Seen` for each step. `on`: with readcache."""
        ...


# Name -> (the call for a path, the lines that it shows: 1-based, inclusive).
WAYS: Mapping[str, tuple[Callable[[str], ToolUse], tuple[int, int]]] = {
    "read": (Read, (1, LINES)),
    "part": (lambda path: Read(path, *_PART), _PART),
    "cat": (lambda path: Bash(f"cat {path}"), (1, LINES)),
    "sed": (lambda path: Bash(f"sed -n '{_PART[0]},{_PART[1]}p' {path}"), _PART),
    "head": (lambda path: Bash(f"head -n {_HEAD} {path}"), (1, _HEAD)),
    "search": (lambda path: Bash(f"grep -n compute {path}"), (1, LINES)),
}
# Name -> the text of a file, of its lines.
FORMS: Mapping[str, Callable[[Sequence[str]], str]] = {
    "plain": lambda lines: "\n".join(lines) + "\n",
    "no-newline-at-its-end": "\n".join,
    "blank-lines": lambda lines: "".join(f"{line}\n\n" if n % 7 == 6 else f"{line}\n" for n, line in enumerate(lines)),
    "blank-lines-at-its-end": lambda lines: "\n".join(lines) + "\n\n\n",
}


class ReadAgain(NamedTuple):
    """A file `name`.py, how it is shown first, and how it is read again."""

    name: str
    text: str
    first: ToolUse
    again: ToolUse
    in_view: frozenset[str]  # the lines of the second call that the first one showed

    def is_shortened(self, result: str) -> bool:
        """Return whether a result of the second call repeats at most a third of the lines in view."""
        return sum(line in result for line in self.in_view) <= _AGAIN * len(self.in_view)


def cells(form: str, kinds: frozenset[type]) -> list[ReadAgain]:
    """Return a cell for each pair of ways, if the host has calls of both kinds."""
    out = []
    for (first, (show, before)), (again, (repeat, after)) in product(WAYS.items(), repeat=2):
        name = f"{first}_{again}"
        text = FORMS[form]([f"{name}_{n} = compute({n * 7919 % 1000}, 'value')" for n in range(1, LINES + 1)])
        in_view = _shown(text, *before) & _shown(text, *after)
        out.append(ReadAgain(name, text, show(f"{name}.py"), repeat(f"{name}.py"), in_view))
    return [cell for cell in out if {type(cell.first), type(cell.again)} <= kinds]


def together(calls: Sequence[ToolUse]) -> list[tuple[ToolUse, ...]]:
    """Return the calls as steps, a few in each, since starting a turn is what takes time in most hosts."""
    return [tuple(calls[at : at + _AT_ONCE]) for at in range(0, len(calls), _AT_ONCE)]


def _shown(text: str, low: int, high: int) -> frozenset[str]:
    return frozenset(text.split("\n")[low - 1 : None if high == LINES else high]) - {""}
