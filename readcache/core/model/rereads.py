"""Rereads: requests for the same bytes right after an omission, and for lines that left the conversation. Two folds of
the log.

    cat app.py         ->  [FILE_UNCHANGED …: app.py lines 1-80, …]
    head -n 60 app.py  ->  an immediate reread: the tokens that the marker saved no longer count as saved

    compacted          ->  app.py lines 1-80 are gone; a restored section has lines 1-40
    head -n 30 app.py  ->  a reread, answered by a marker that names the section
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from readcache.core.model.events import Account, Amended, Delivered, MappedSpan, Moment, Origin
from readcache.core.model.reply import Outcome, Reason
from readcache.core.model.spans import Span, merge_spans, subtract
from readcache.core.model.unconfirmed import lacks_text

# Calls. A reread is immediate if at most this many other calls came in between: a model may look around first.
WITHIN = 3
# Answers whose lines are still unknown because they have not reached the reader yet.
MOST_PENDING = 64
Lines = dict[str, tuple[Span, ...]]  # of files, by path


@dataclass(slots=True)
class _Left:
    """An omission: the lines of files that a reply omitted. `is_open`: the reader may still request them again."""

    call: int
    batch: str
    request: str
    lines: Lines
    is_open: bool = True


class _Answer(NamedTuple):
    """An answer, the earlier omissions that it may read again, and its own omission."""

    call: int
    before: list[_Left]
    own: _Left | None


class RereadDetector:
    """The omissions of one reader, and which of them were read again immediately."""

    def __init__(self) -> None:
        self._recent: deque[_Left] = deque(maxlen=WITHIN + 1)
        self._pending: deque[_Answer] = deque(maxlen=MOST_PENDING)

    def clear(self) -> None:
        """Forget the omissions. From now on a repeated read has a reason: the reader wrote something, or texts left the
        conversation."""
        self._recent.clear()

    def take_back(self, call: int) -> None:
        """Record that the reply of this call omitted nothing after all: its lines were shown."""
        for left in self._recent:
            left.is_open = left.is_open and left.call != call

    def deliver(self, event: Delivered, account: Account) -> list[int]:
        """Record an answer. Return the numbers of the calls whose omissions it read again."""
        when, own = event.when, None
        before = [left for left in self._recent if comes_after(when, left.call, left.batch, WITHIN + 1)]
        repeated = self._close_reread(left for left in before if _is_repeat(account, left))
        if account.outcome is not Outcome.FULL:
            own = _Left(when.call, when.batch, account.request, {}, is_open=not event.unconfirmed)
            self._recent.append(own)
        answer = _Answer(when.call, before, own)
        if not event.unconfirmed and not lacks_text(event):
            return repeated + self._take_lines(event, answer)
        self._pending.append(answer)  # a repeated request is counted now; the lines are not known yet
        return repeated

    def show(self, event: Delivered) -> list[int]:
        """Record the lines of an answer that the view did not have until it was shown. Return the same as `deliver`, so
        that the result does not depend on the number of steps in which an answer is logged."""
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
        return self._close_reread(left for left in answer.before if asks_again(left.lines, asked))

    def _close_reread(self, found: Iterable[_Left]) -> list[int]:
        """Close the omissions that are still open. Return the numbers of their calls."""
        calls = []
        for left in found:
            if left.is_open:
                left.is_open = False
                calls.append(left.call)
        return calls


def comes_after(when: Moment, call: int, batch: str, within: int) -> bool:
    """Return True if a call came at most `within` calls after the call number `call`, and its model had seen the answer
    to that call. `batch`: the batch of that call."""
    at_once = bool(when.batch) and when.batch == batch
    return not at_once and not 0 <= when.started < call and 0 < when.call - call <= within


def _is_repeat(account: Account, left: _Left) -> bool:
    return account.request == left.request and account.reason is Reason.INSISTED


def asks_again(omitted: Lines, asked: Lines) -> bool:
    """Return True if a request asks for omitted lines again: for at least half of them, and for at most as many other
    lines of their files."""
    known = {path: asked.get(path, ()) for path in omitted}
    others = sum(size_of(subtract(spans, omitted[path])) for path, spans in known.items())
    again = sum(map(size_of, known.values())) - others
    return 0 < sum(map(size_of, omitted.values())) <= 2 * again and others <= again


def lines_of(event: Delivered | Amended, *, shown: bool) -> Lines:
    """Return the lines of files that an answer omitted, by path. If `shown`, include the lines that it showed."""
    spans: dict[str, list[Span]] = {}
    for path, span in _spans(event, shown=shown):
        spans.setdefault(path, []).append(span)
    return {path: merge_spans(found) for path, found in spans.items()}


def _spans(event: Delivered | Amended, *, shown: bool) -> Iterator[tuple[str, Span]]:
    for marker in event.markers:
        if marker.path is not None:
            yield marker.path, (marker.start, marker.end)
    for mapped in event.source_map if shown else ():
        if len(mapped.keys) == 1 and mapped.first:
            yield mapped.keys[0], (mapped.first, mapped.first + mapped.count - 1)


def size_of(spans: tuple[Span, ...]) -> int:
    """Return the number of lines in the spans."""
    return sum(end - start + 1 for start, end in spans)


# Calls. A reread within this many calls after lines left the conversation counts as caused by their removal. Half of
# all rereads come by the fifth call. The check of real compactions also looks at 20 calls.
WATCHED = 20


class Reread(NamedTuple):
    """The answer of `LostLines.read`: whether a call read lost lines again, and whether a restored section answered
    it."""

    is_one: bool
    is_answered: bool


class LostLines:
    """The lines that one reader lost recently."""

    def __init__(self) -> None:
        self._spans: dict[str, tuple[Span, ...]] = {}
        self._until = 0
        self._put_back: set[str] = set()  # keys in restored sections that were not read or written since

    def lose(self, source_map: Iterable[MappedSpan], number: int) -> None:
        """Record that these lines left the conversation after call `number`."""
        spans: dict[str, list[Span]] = {}
        for mapped in source_map:
            self._put_back.difference_update(mapped.keys)
            if len(mapped.keys) == 1 and mapped.first:
                spans.setdefault(mapped.keys[0], []).append((mapped.first, mapped.first + mapped.count - 1))
        if number > self._until:
            self._spans = {}
        for key, found in spans.items():
            self._spans[key] = merge_spans([*self._spans.get(key, ()), *found])
        self._until = number + WATCHED if spans else self._until

    def read(self, event: Delivered) -> Reread:
        """Record an answer with its lines. The call is a reread if at least half of the lines were lost."""
        self._put_back.difference_update(key for mapped in event.source_map for key in mapped.keys)
        self._put_back.difference_update(marker.path for marker in event.markers if marker.path)
        if event.when.call > self._until or event.account is None:
            return Reread(False, False)
        asked = lines_of(event, shown=True)
        left = {key: subtract(spans, self._spans.get(key, ())) for key, spans in asked.items()}
        total = sum(map(size_of, asked.values()))
        is_one = total > 0 and 2 * sum(map(size_of, left.values())) <= total
        source_spans = (span for marker in event.markers for span in marker.source_spans)
        return Reread(is_one, is_one and any(span.origin is Origin.RESTORED for span in source_spans))

    def put_back(self, section: Delivered) -> None:
        """Record the lines of files that a compactor restored."""
        self._put_back.update(key for mapped in section.source_map for key in mapped.keys if key in self._spans)

    def write(self, keys: Iterable[str]) -> bool:
        """Record a write. Return True if one of its files was restored and not read since: the restored section saved a
        read."""
        known = self._put_back.intersection(keys)
        self._put_back -= known
        return bool(known)
