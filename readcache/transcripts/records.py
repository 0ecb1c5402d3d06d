"""The plain records that every loader makes from a transcript, in the order of one reader's conversation, and `Turns`,
which collects them.

A `Recording` is one reader's conversation. A `RequestSent` comes before the calls that the model made in its answer.
The results of these calls are in the next request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

from readcache.core.model.call import Frame
from readcache.core.model.errors import ReadcacheError
from readcache.core.model.tool_call import ToolCall
from readcache.transcripts.tools import understood
from readcache.transcripts.values import epoch_of, said_in

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
    first model that the transcript names, or "". `directory`: where the agent began to work, or "".
    """

    name: str
    form: str  # the name of the format
    items: tuple[Item, ...]
    reader: str = "main"
    agent: str = ""  # the harness
    since: float | None = None
    first_call: str = ""
    model: str = ""
    directory: str = ""


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


class Turns:
    """A recording under construction, from a transcript in the order of the conversation: an answer of the model, then
    the results of its calls."""

    def __init__(self) -> None:
        self.first_call = self.model = self.directory = ""
        self.since: float | None = None
        self._now: float | None = None
        self._items: list[Item] = []
        self._waiting: dict[str, ToolCall] = {}
        # Results that came before their calls, and the number of the answer that they followed.
        self._early: dict[str, tuple[int, dict[str, Any]]] = {}
        self._request: int | None = None  # index of the newest request, until its answer ends
        self._unpaid: int | None = None  # index of the newest request, until its usage is known
        self._typed = self._count = 0

    def at(self, time: object) -> None:
        """Set the current time, in any form that `epoch_of` reads. The first time is the start of the conversation."""
        now = epoch_of(time)
        self._now = self._now if now is None else now
        self.since = now if self.since is None else self.since

    def by(self, model: object) -> None:
        """Record the name of the model. The first name counts."""
        self.model = self.model or (model if isinstance(model, str) else "")

    def type(self, chars: int) -> None:
        """Record a message of the user or the host. `chars`: its length in characters."""
        self._typed += chars
        self._request = None

    def answer(self, chars: int = 0) -> None:
        """Record text of the model. `chars`: its length in characters.

        The first text after a result or a user message starts the answer to a new request.
        """
        if self._request is None:
            self._request = self._unpaid = len(self._items)
            self._count += 1
            self._items.append(RequestSent(added=self._typed))
            self._typed = 0
        one = self._items[self._request]
        if chars and isinstance(one, RequestSent):
            self._items[self._request] = replace(one, answer=one.answer + chars)

    def pay(self, usage: RequestSent) -> None:
        """Record the tokens of the newest request, unless they are already known."""
        one = None if self._unpaid is None else self._items[self._unpaid]
        if self._unpaid is not None and isinstance(one, RequestSent):
            self._items[self._unpaid] = replace(usage, added=one.added, answer=one.answer)
        self._unpaid = None

    def tool(self, call_id: str, name: str, given: Mapping[str, Any], cwd: str, said: str | None = None) -> None:
        """Record a tool call of the model.

        `cwd`: the directory for commands that name none. `said`: the text that the agent wrote, if the arguments do not
        contain it verbatim.
        """
        said = said_in(given) if said is None else said
        number, early = self._early.pop(call_id, (0, None))
        if early is None:
            self.answer(len(said))
        self.first_call, self.directory = self.first_call or call_id, self.directory or cwd
        batch = f"answer-{number or self._count}"
        self._waiting[call_id] = ToolCall(call_id, name, given, "", batch, cwd=cwd, said=said)
        if early is not None:
            self.result(call_id, **early)

    def result(
        self,
        call_id: str,
        output: str,
        *,
        failed: bool = False,
        exit_code: int | None = 0,
        complete: bool = True,
        frame: Frame | None = None,
    ) -> None:
        """Record the result of a call. Keep the result of an unknown call for that call: some hosts write the result of
        a parallel call first.

        `exit_code`: None if it is not known. `complete`: False if the output was truncated. `frame`: the host's text
        around the output.
        """
        if call_id in self._waiting:
            call = replace(self._waiting.pop(call_id), output=output, is_error=failed, at=self._now)
            call = replace(call, exit_code=exit_code, complete=complete, frame=frame)
            self._items.append(understood(call))
        else:
            given = {"output": output, "failed": failed, "exit_code": exit_code, "complete": complete, "frame": frame}
            self._early[call_id] = self._count, given
        self._request = None

    def trim(self, kept: frozenset[str] = frozenset(), *, compacts: bool = True) -> None:
        """Record that the host removed all calls except `kept`. `compacts`: as for `HistoryRemoval`."""
        self._items.append(HistoryRemoval(kept, compacts=compacts))
        self._request = None

    def recording(self, name: str, form: str, *, agent: str = "", reader: str = "main") -> Recording:
        """Return the whole recording, without the requests that have no usage."""
        items = tuple(item for item in self._items if not isinstance(item, RequestSent) or item.prompt)
        known = self.since, self.first_call, self.model, self.directory
        return Recording(name, form, items, reader, agent or form, *known)

    @property
    def waiting(self) -> list[str]:
        """The IDs of the calls that have no result yet, oldest first."""
        return list(self._waiting)
