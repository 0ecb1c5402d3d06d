"""Omissions that did not hold: the reader asked for the same bytes again right after. A fold of the log.

    cat app.py        ->  [FILE_UNCHANGED …: app.py lines 1-80, …]
    head -n 60 app.py ->  a bounce

What the marker saved no longer counts as saved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from readcache.model.events import Account, Delivered, Moment
from readcache.model.reply import Outcome, Reason
from readcache.model.spans import Span, merge_spans, subtract

# A call bounces off an omission when at most this many other calls came between: a model may look around first.
WITHIN = 3
# Omissions after which a reader's own share of bounces says as much as what is usual.
SURE_AFTER = 20


@dataclass(frozen=True, slots=True)
class _Left:
    """What a reply left out: the lines of files."""

    call: int
    batch: str
    request: str
    lines: dict[str, tuple[Span, ...]]


class Bounces:
    """The omissions of one reader, and those that it bounced off."""

    def __init__(self) -> None:
        self.omissions = 0  # replies that left something out
        self.count = 0
        self._recent: deque[_Left] = deque(maxlen=WITHIN + 1)

    def rate(self, usual: float) -> float:
        """The share of omissions that bounced, from `usual`, before anything is known, to what was seen."""
        return (SURE_AFTER * usual + self.count) / (SURE_AFTER + self.omissions)

    def clear(self) -> None:
        """From now on a repeated read has a reason: the reader wrote something, or texts left the conversation."""
        self._recent.clear()

    def take_back(self, call: int) -> None:
        """The reply omitted nothing after all: its lines were shown."""
        self.omissions -= 1
        self._recent = deque((left for left in self._recent if left.call != call), maxlen=WITHIN + 1)

    def deliver(self, event: Delivered, account: Account) -> list[int]:
        """Take in an answer. Returns the numbers of the calls whose omissions it bounced off."""
        asked = _lines_of(event, shown=True) if self._recent else {}
        bounced = [
            left
            for left in self._recent
            if _is_after(event.when, left) and (_is_repeat(account, left) or _has_half(left, asked))
        ]
        for left in bounced:
            self._recent.remove(left)
        self.count += len(bounced)
        if account.outcome is not Outcome.FULL:
            self.omissions += 1
            lines, when = _lines_of(event, shown=False), event.when
            self._recent.append(_Left(when.call, when.batch, account.request, lines))
        return [left.call for left in bounced]


def _is_after(when: Moment, left: _Left) -> bool:
    """True if the call came soon after the omission, and its model had seen the omission."""
    at_once = bool(when.batch) and when.batch == left.batch
    return not at_once and not 0 <= when.started < left.call and when.call - left.call - 1 <= WITHIN


def _is_repeat(account: Account, left: _Left) -> bool:
    return account.request == left.request and account.reason in (Reason.INSISTED, Reason.GIVEN_BACK)


def _has_half(left: _Left, asked: dict[str, tuple[Span, ...]]) -> bool:
    """True if at least half of the lines that were left out are asked for now."""
    again = sum(_count(lines) - _count(subtract(lines, asked.get(path, ()))) for path, lines in left.lines.items())
    return 0 < sum(map(_count, left.lines.values())) <= 2 * again


def _lines_of(event: Delivered, *, shown: bool) -> dict[str, tuple[Span, ...]]:
    """The lines of files that an answer left out, and those that it showed, too."""
    spans: dict[str, list[Span]] = {}
    for path, span in _spans(event, shown=shown):
        spans.setdefault(path, []).append(span)
    return {path: merge_spans(found) for path, found in spans.items()}


def _spans(event: Delivered, *, shown: bool) -> Iterator[tuple[str, Span]]:
    for pointer in event.pointers:
        if pointer.path is not None:
            yield pointer.path, (pointer.start, pointer.end)
    for piece in event.pieces if shown else ():
        if len(piece.keys) == 1 and piece.first:
            yield piece.keys[0], (piece.first, piece.first + piece.count - 1)


def _count(spans: tuple[Span, ...]) -> int:
    return sum(end - start + 1 for start, end in spans)
