"""The plain records that every loader makes of a transcript, in the order in which one reader met them.

A `Recording` is one reader's conversation. A `RequestSent` stands before the calls that the model made in its answer;
their results are in the next request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from readcache.model.errors import ReadcacheError


class NotUnderstood(ReadcacheError):
    """A file, or a line of it, that no loader understands. The text names both."""


@dataclass(frozen=True, slots=True)
class AskedCommand:
    """A shell command. `cwd`: where it began. `head`, `tail`: lines in front of its output and behind it that are the
    host's. `exit_code`: None when it is not known."""

    command: str
    cwd: str
    head: int = 0
    exit_code: int | None = 0
    tail: int = 0


@dataclass(frozen=True, slots=True)
class AskedRead:
    """Lines `start` to `end` (1-based, inclusive; None: to the end) of a file, by a read tool. `edges_only`: the host
    numbers the lines itself afterwards. `tail`: lines behind them that are the host's."""

    path: str
    start: int = 1
    end: int | None = None
    numbered: bool = True
    edges_only: bool = False
    tail: int = 0


@dataclass(frozen=True, slots=True)
class AskedTool:
    """Any other tool: a search, a listing, one of an MCP server."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Written:
    """A file that the call wrote. `content`: all of it, where the agent gave that; None: a part was edited."""

    path: str
    content: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a tool, and the result as the model was given it."""

    call_id: str
    tool: str  # its name in tables: "bash", "read", "grep"
    asked: AskedCommand | AskedRead | AskedTool | None  # None: the result is counted and never judged
    said: str  # what the agent itself wrote in the call: it sees that too
    output: str
    batch: str = ""  # calls that the model made at once share it
    writes: tuple[Written, ...] = ()
    complete: bool = True  # False: the host cut the output
    failed: bool = False  # the tool gave an error text, no content
    arguments: int = 0  # characters of all that the agent wrote in the call, as JSON
    replaced: str = ""  # the old lines of an edit, which the agent must have known
    at: float | None = None  # when the result came, in seconds since the epoch


@dataclass(frozen=True, slots=True)
class HistoryCut:
    """The host took calls out of the conversation: all but `kept`. `restored`: files that it showed again by itself.
    `compacts`: it made room; else somebody went back to an earlier point."""

    kept: frozenset[str] = frozenset()
    restored: tuple[RecordedCall, ...] = ()
    compacts: bool = True


@dataclass(frozen=True, slots=True)
class RequestSent:
    """One request to the model, with the tokens that the provider billed for it. All 0: the transcript does not say.
    `fresh` tokens were neither read from a cache nor written to one, those of `cache_write_hour` to one that holds for
    an hour and not for minutes. `added`: characters that stand in this request and not in the one before, besides
    results of calls: what the user typed. `answer`: characters of the model's answer, as far as they are recorded."""

    fresh: int = 0
    cache_write: int = 0
    cache_write_hour: int = 0
    cache_read: int = 0
    output: int = 0
    added: int = 0
    answer: int = 0

    @property
    def prompt(self) -> int:
        """Tokens of the whole request."""
        return self.fresh + self.cache_write + self.cache_write_hour + self.cache_read


Item = RecordedCall | HistoryCut | RequestSent


@dataclass(frozen=True, slots=True)
class Recording:
    """One reader's conversation. `since`: seconds since the epoch at its first event; None: the transcript has no
    times. `first_call`: the harness's own id of its first call, by which copies of a conversation are known; "" for
    none. `model`: the first one that the transcript names; "" for none."""

    name: str
    form: str  # the name of the format
    items: tuple[Item, ...]
    reader: str = "main"
    agent: str = ""  # the harness
    since: float | None = None
    first_call: str = ""
    model: str = ""


@dataclass(slots=True)
class Damage:
    """Lines that were skipped: how many, and where the first one stands."""

    lines: int = 0
    first: str = ""

    def add(self, path: str, line: int) -> None:
        """One more, at this line (from 1)."""
        self.lines += 1
        self.first = self.first or f"{path}:{line}"
