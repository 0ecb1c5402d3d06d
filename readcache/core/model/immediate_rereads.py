"""Omissions that did not hold: the reader asked for the same bytes again right after. A fold of the log.

    cat app.py        ->  [FILE_UNCHANGED …: app.py lines 1-80, …]
    head -n 60 app.py ->  a bounce

What the marker saved no longer counts as saved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from readcache.core.model.events import Account, Delivered, Moment
from readcache.core.model.reply import Outcome, Reason
from readcache.core.model.spans import Span, merge_spans, subtract
from readcache.core.model.unconfirmed import lacks_text

# A call bounces off an omission when at most this many other calls came between: a model may look around first.
WITHIN = 3
# Answers on their way to the reader at once, of which the lines are not known yet.
MOST_PENDING = 64


@dataclass(slots=True)
class _Left:
    """What a reply left out: the lines of files. `is_open`: the reader may still ask for them again."""

    call: int
    batch: str
    request: str
    lines: dict[str, tuple[Span, ...]]
    is_open: bool = True


class _Answer(NamedTuple):
    """An answer, the omissions that it may bounce off, and its own one."""

    call: int
    before: list[_Left]
    own: _Left | None


class RereadDetector:
    """The omissions of one reader, and those that it bounced off."""

    def __init__(self) -> None:
        self._recent: deque[_Left] = deque(maxlen=WITHIN + 1)
        self._pending: deque[_Answer] = deque(maxlen=MOST_PENDING)

    def clear(self) -> None:
        """From now on a repeated read has a reason: the reader wrote something, or texts left the conversation."""
        self._recent.clear()

    def take_back(self, call: int) -> None:
        """The reply omitted nothing after all: its lines were shown."""
        for left in self._recent:
            left.is_open = left.is_open and left.call != call

    def deliver(self, event: Delivered, account: Account) -> list[int]:
        """Take in an answer. Returns the numbers of the calls whose omissions it bounced off."""
        when, own = event.when, None
        before = [left for left in self._recent if _is_after(when, left)]
        repeated = self._close_reread(left for left in before if _is_repeat(account, left))
        if account.outcome is not Outcome.FULL:
            own = _Left(when.call, when.batch, account.request, {}, is_open=not event.unconfirmed)
            self._recent.append(own)
        answer = _Answer(when.call, before, own)
        if not event.unconfirmed and not lacks_text(event):
            return repeated + self._take_lines(event, answer)
        self._pending.append(answer)  # what a repeat got is known, and its lines are not
        return repeated

    def show(self, event: Delivered) -> list[int]:
        """Take in the lines of an answer that was withheld from the view until it was shown. Returns what `deliver`
        does, so that it does not matter in how many steps an answer is logged."""
        answer = next((answer for answer in self._pending if answer.call == event.when.call), None)
        if answer is None:
            return []
        self._pending.remove(answer)
        return self._take_lines(event, answer)

    def _take_lines(self, event: Delivered, answer: _Answer) -> list[int]:
        if answer.own is not None and event.account is not None:
            answer.own.lines = lines_of(event, shown=False)
            answer.own.is_open = event.account.outcome is not Outcome.FULL
        if not answer.before:
            return []
        asked = lines_of(event, shown=True)
        return self._close_reread(left for left in answer.before if _has_half(left, asked))

    def _close_reread(self, found: Iterable[_Left]) -> list[int]:
        """Count those that are still open, close them, and return the numbers of their calls."""
        calls = []
        for left in found:
            if left.is_open:
                left.is_open = False
                calls.append(left.call)
        return calls


def _is_after(when: Moment, left: _Left) -> bool:
    """True if the call came soon after the omission, and its model had seen the omission."""
    at_once = bool(when.batch) and when.batch == left.batch
    return not at_once and not 0 <= when.started < left.call and when.call - left.call - 1 <= WITHIN


def _is_repeat(account: Account, left: _Left) -> bool:
    return account.request == left.request and account.reason is Reason.INSISTED


def _has_half(left: _Left, asked: dict[str, tuple[Span, ...]]) -> bool:
    """True if at least half of the lines that were left out are asked for now."""
    again = sum(size_of(lines) - size_of(subtract(lines, asked.get(path, ()))) for path, lines in left.lines.items())
    return 0 < sum(map(size_of, left.lines.values())) <= 2 * again


def lines_of(event: Delivered, *, shown: bool) -> dict[str, tuple[Span, ...]]:
    """The lines of files that an answer left out, and those that it showed, too."""
    spans: dict[str, list[Span]] = {}
    for path, span in _spans(event, shown=shown):
        spans.setdefault(path, []).append(span)
    return {path: merge_spans(found) for path, found in spans.items()}


def _spans(event: Delivered, *, shown: bool) -> Iterator[tuple[str, Span]]:
    for marker in event.markers:
        if marker.path is not None:
            yield marker.path, (marker.start, marker.end)
    for mapped in event.source_map if shown else ():
        if len(mapped.keys) == 1 and mapped.first:
            yield mapped.keys[0], (mapped.first, mapped.first + mapped.count - 1)


def size_of(spans: tuple[Span, ...]) -> int:
    """How many lines they are."""
    return sum(end - start + 1 for start, end in spans)
