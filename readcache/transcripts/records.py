"""The plain records that every loader makes of a transcript, in the order in which one reader met them.

A `Recording` is one reader's conversation. A `RequestSent` stands before the calls that the model made in its answer;
their results are in the next request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from readcache.core.model.errors import ReadcacheError
from readcache.core.model.tool_call import ToolCall

SAMPLE = 50  # objects of a file that are looked at to find out its format: hosts begin with lines of their own


class NotUnderstood(ReadcacheError):
    """A file, or a line of it, that no loader understands. The text names both."""


@dataclass(frozen=True, slots=True)
class HistoryRemoval:
    """The host took calls out of the conversation: all but `kept`. `restored`: files that it showed again by itself.
    `compacts`: it made room; else somebody went back to an earlier point."""

    kept: frozenset[str] = frozenset()
    restored: tuple[ToolCall, ...] = ()
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


Item = ToolCall | HistoryRemoval | RequestSent


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


@dataclass(slots=True)
class Content:
    """The JSON objects of a file: one on each line, or the members of one list. `sample`: the first, with their lines;
    `rest`: those after them."""

    path: str
    sample: list[tuple[int, dict[str, Any]]]
    rest: Iterable[tuple[int, dict[str, Any]]] = ()
    damage: Damage = field(default_factory=Damage)
    line: int = 1  # that was handed out last

    def objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """(line, object) of each line. Once."""
        for line, value in chain(self.sample, self.rest):
            self.line = line
            yield line, value

    def location(self, line: int = 1) -> str:
        """For people: the file and the line."""
        return f"{self.path}:{line}"
