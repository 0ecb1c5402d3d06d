"""Describe a host for the conformance suite: the steps of its scripted model, and the requests sent to the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


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
