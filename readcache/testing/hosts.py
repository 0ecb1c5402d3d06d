"""A host as the conformance suite drives it: what its scripted model does, and what that model was sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


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
