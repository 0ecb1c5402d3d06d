"""A reader's conversation while a loader reads it: requests, calls that wait for their results, cuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from readcache.transcripts.records import HistoryCut, Item, RecordedCall, RequestSent

Made = Callable[..., RecordedCall]


class Usage(NamedTuple):
    """Tokens of one request, as `RequestSent` has them."""

    fresh: int = 0
    cache_write: int = 0
    cache_read: int = 0
    output: int = 0


class Turns:
    """For transcripts in the order of the conversation: what the model answered, then the results of its calls."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._waiting: dict[str, tuple[Made, str]] = {}
        self._request: int | None = None  # place of the newest one, while its answer goes on
        self._unpaid: list[int] = []  # places of requests that no usage was told of
        self._typed = self._answered = self._count = 0
        self.first_call = ""

    def type(self, chars: int) -> None:
        """The user, or the host, said so many characters."""
        self._typed += chars
        self._request = None

    def answer(self, chars: int = 0) -> None:
        """The model said so many characters; the first since a result or the user is the answer to a request."""
        if self._request is None:
            self._request = len(self._items)
            self._count += 1
            self._unpaid.append(self._request)
            self._items.append(RequestSent(added=self._typed))
            self._typed = self._answered = 0
        self._answered += chars
        one = self._items[self._request]
        if isinstance(one, RequestSent) and chars:
            self._items[self._request] = RequestSent(added=one.added, answer=self._answered)

    def pay(self, usage: Usage) -> None:
        """The usage of the newest request that has none."""
        if not self._unpaid:
            return
        place = self._unpaid.pop()
        self._unpaid.clear()
        one = self._items[place]
        if isinstance(one, RequestSent):
            fields = usage._asdict()
            self._items[place] = RequestSent(**fields, added=one.added, answer=one.answer)

    def call(self, call_id: str, made: Made, chars: int = 0) -> None:
        """The model called a tool; `made(call_id, output, batch)` makes the record when the result is there."""
        self.answer(chars)
        self.first_call = self.first_call or call_id
        self._waiting[call_id] = made, f"answer-{self._count}"

    def result(self, call_id: str, output: str, **known: Any) -> None:
        """The result of that call, with what `made` must know; nothing for an unknown call."""
        if call_id in self._waiting:
            made, batch = self._waiting.pop(call_id)
            self._items.append(made(call_id, output, batch, **known))
        self._request = None

    def cut(self, kept: frozenset[str] = frozenset(), *, compacts: bool = True) -> None:
        """The host took all but these calls out."""
        self._items.append(HistoryCut(kept, compacts=compacts))
        self._request = None

    def finished(self) -> tuple[Item, ...]:
        """All of it. Requests that no usage was told of say nothing."""
        return tuple(item for item in self._items if not isinstance(item, RequestSent) or item.prompt)

    @property
    def waiting(self) -> list[str]:
        """The calls that have no result yet, the oldest first."""
        return list(self._waiting)
