"""The plain records that every loader makes from a transcript, in the order of one reader's conversation.

A `Recording` is one reader's conversation. A `RequestSent` comes before the calls that the model made in its answer.
The results of these calls are in the next request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from readcache.core.model.errors import ReadcacheError
from readcache.core.model.tool_call import ToolCall

SAMPLE = 50  # objects of a file that show its format; several, because some hosts begin with lines of their own


class NotUnderstood(ReadcacheError):
    """A file, or a line of it, that no loader understands. The text names both."""


@dataclass(frozen=True, slots=True)
class HistoryRemoval:
    """A removal by the host of all calls except `kept` from the conversation.

    `restored`: files that the host showed again by itself. `compacts`: True if the host compacted the conversation,
    False if the conversation went back to an earlier point.
    """

    kept: frozenset[str] = frozenset()
    restored: tuple[ToolCall, ...] = ()
    compacts: bool = True


@dataclass(frozen=True, slots=True)
class RequestSent:
    """One request to the model, with the tokens that the provider billed for it. All are 0 if the transcript does not
    say.

    `fresh`: tokens that were neither read from a cache nor written to one. `cache_write`: tokens written to a cache
    that lasts for minutes. `cache_write_hour`: tokens written to a cache that lasts for an hour. `added`: characters
    that are new in this request, besides results of calls, such as text that the user typed. `answer`: recorded
    characters of the model's answer.
    """

    fresh: int = 0
    cache_write: int = 0
    cache_write_hour: int = 0
    cache_read: int = 0
    output: int = 0
    added: int = 0
    answer: int = 0

    @property
    def prompt(self) -> int:
        """The tokens of the whole request."""
        return self.fresh + self.cache_write + self.cache_write_hour + self.cache_read


Item = ToolCall | HistoryRemoval | RequestSent


@dataclass(frozen=True, slots=True)
class Recording:
    """One reader's conversation.

    `since`: time of its first event, in seconds since the epoch, or None if the transcript has no times. `first_call`:
    the harness's own ID of its first call, or "" if there is none; it identifies copies of a conversation. `model`: the
    first model that the transcript names, or "".
    """

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
    """The number of lines that were skipped, and the location of the first one."""

    lines: int = 0
    first: str = ""

    def add(self, path: str, line: int) -> None:
        """Count one more skipped line. `line` is its number, from 1."""
        self.lines += 1
        self.first = self.first or f"{path}:{line}"


@dataclass(slots=True)
class Content:
    """The JSON objects of a file: one on each line, or the members of one list.

    `sample`: the first objects, with their line numbers. `rest`: the objects after the sample.
    """

    path: str
    sample: list[tuple[int, dict[str, Any]]]
    rest: Iterable[tuple[int, dict[str, Any]]] = ()
    damage: Damage = field(default_factory=Damage)
    line: int = 1  # of the object that was yielded last

    def objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield (line, object) for each object. Call this only once, because it consumes `rest`."""
        for line, value in chain(self.sample, self.rest):
            self.line = line
            yield line, value

    def location(self, line: int = 1) -> str:
        """Return the file and the line, as text for people."""
        return f"{self.path}:{line}"


class Form(NamedTuple):
    """A format: its name, a function that recognises its objects, and a function that reads a file.

    `kept`: the directory in which the host keeps such files, or None: the variable that names the host's directory, the
    default of that variable, and the path below it.
    """

    name: str
    knows: Callable[[Mapping[str, Any]], bool]
    load: Callable[[Content], Iterator[Recording]]
    kept: tuple[str, str, str] | None = None
