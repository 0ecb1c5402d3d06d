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
    """A call of the host's shell tool."""

    command: str
    timeout: float | None = None  # seconds, if the host's tool takes a timeout


@dataclass(frozen=True, slots=True)
class Read:
    """A call of the host's read tool. Lines are 1-based and inclusive; `end` None is the end of the file. `path` is
    relative to the project."""

    path: str
    start: int = 1
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """A call of the host's edit tool, which replaces `old` with `new`."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Delegate:
    """A call that starts a sub-agent. Its model makes these calls, one per message."""

    calls: tuple[Bash | Read | Edit, ...]


@dataclass(frozen=True, slots=True)
class Compact:
    """An event: the conversation is compacted, and a summary replaces older messages."""


@dataclass(frozen=True, slots=True)
class Clear:
    """An event: the host removes the text of the oldest tool result. The result itself stays, without its text."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """An event: the user goes back. The last `calls` tool calls and everything after them leave the conversation; files
    stay as they are."""

    calls: int


@dataclass(frozen=True, slots=True)
class Worker:
    """An event: the conversation continues in another process.

    From here on, adapter `number` (counted from 0) serves the steps. It has the host's record of the conversation, and
    a durable store if the adapter needs one for that. It does not know the memory of other adapters.
    """

    number: int


ToolUse = Bash | Read | Edit | Delegate
# Parallel calls in one message of the model, or an event.
Step = tuple[ToolUse, ...] | Compact | Clear | Rewind | Worker


@dataclass(frozen=True, slots=True)
class Seen:
    """The request that the model was sent after a step.

    `texts`: every text in it, oldest first, including the system prompt, the model's own words and arguments of calls.
    `results`: the texts that are results of the step's calls. An event or a `Delegate` may have no results.

    Leave out the texts that the API drops because a server-side compaction follows them. If a result is inside JSON,
    give it decoded, as lines.
    """

    texts: tuple[str, ...]
    results: tuple[str, ...] = ()
    inner: tuple[Seen, ...] = ()  # the requests that a sub-agent's model was sent


class HostUnderTest(Protocol):
    """A host with a scripted model. `can`: the kinds of calls and events that it has, at least `Bash`.

    It may also have these attributes:

    - `normal(text)`: removes from a result everything that differs from run to run, such as a process ID or a duration.
    - `store`: a path that the suite sets. While it is not None, the adapter must keep its durable store there.
    - `clear`: Marks that the suite sets. While they are not None, the adapter must clear old results by them.
    - `cannot_shorten`: the names of the re-reads that the host leaves no way to shorten, by form (see `rereads`).
    """

    can: frozenset[type]

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """Run one conversation in the project `root`, from its beginning. Return a `Seen` for each step. `on`: with
        readcache."""
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
        """Return True if a result of the second call repeats at most a third of the lines in view."""
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
