"""The view: what this reader can still see. A fold over the session's log, one event at a time.

    view = View()
    for record in store.records(session_id, agent_id):
        view.apply(record.event)

`apply` costs what the event changes, however long the log is. A `View` belongs to its session; everybody else only
reads.

A *reference* is a stretch of file lines in a delivery that is still visible. For each key (see `claims`) the view keeps
the references of the version that is current as far as is known (`numbered`, `loose`) and those from before a write or
an observed change (`stale`: their bytes are visible, but of the file as it was).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain

from readcache.conversation.settle import lost_lines
from readcache.model import text as text_
from readcache.model.claims import WHOLE_TREE, glob_stem, path_of
from readcache.model.events import Compacted, Delivered, Event, Failed, Forgot, Origin, Piece, Rewound, Settled, Wrote
from readcache.model.spans import SpanMap, subtract
from readcache.reply import UNCREDITED, Outcome, Reason

# Shorter results are not looked up as a whole: two of the shortest markers are longer.
SHORTEST_WHOLE = 120
# Requests and answers remembered to tell a reader who insists; it concerns the last few calls only.
MOST_REPEATS = 64
# Split deliveries kept at hand, in lines; enough for the few files an agent goes back and forth between.
CACHED_LINES = 10_000
# Keys that are inserted one by one; more of them are sorted together, which costs a look at all keys.
FEW_KEYS = 100
# Files of one name that are looked through; keeps a call's cost apart from the session's length.
MOST_NAMESAKES = 48


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """A visible text: the event that put it there. Compared by identity."""

    event: Delivered

    @property
    def call(self) -> int:
        """The how-manieth call of its context it was."""
        return self.event.call


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A piece of a visible delivery."""

    delivery: Delivery
    piece: Piece


@dataclass(frozen=True, slots=True)
class Invalidation:
    """From here on older references of a key are stale: at which call, and whether the agent itself wrote."""

    call: int
    written: bool
    label: str = ""


class KeyView:
    """The references of one key: a fold over what was shown of it and what made that stale."""

    __slots__ = ("current", "invalid", "loose", "numbered", "stale", "total")

    def __init__(self) -> None:
        self.numbered: SpanMap[Reference] = SpanMap()
        self.loose: list[Reference] = []  # those whose line numbers are not known
        self.current: list[Reference] = []  # numbered and loose, oldest first
        self.stale: list[Reference] = []
        self.invalid: Invalidation | None = None
        self.total: int | None = None  # lines in the file, where its end was seen

    def add(self, reference: Reference) -> None:
        """Take in one more reference."""
        self.current.append(reference)
        piece = reference.piece
        if not piece.first:
            self.loose.append(reference)
            return
        last = piece.first + piece.count - 1
        self.numbered.assign(piece.first, last, reference)
        if piece.eof:
            self.total = last

    def invalidate(self, step: Invalidation) -> None:
        """All that was shown so far is of the file as it was."""
        self.stale += self.current
        self.numbered, self.loose, self.current = SpanMap(), [], []
        self.invalid, self.total = step, None

    def changed(self, change: Callable[[list[Reference]], list[Reference]]) -> KeyView:
        """The same with other references in the places of those that were there."""
        new = KeyView()
        new.stale, new.invalid = change(self.stale), self.invalid
        for reference in change(self.current):
            new.add(reference)
        return new

    def references(self) -> Iterator[Reference]:
        """All of them, current and stale, newest first."""
        return chain(reversed(self.current), reversed(self.stale))

    def is_stale(self, delivery: Delivery) -> bool:
        """Was the key written or seen changed since `delivery`?"""
        return self.invalid is not None and self.invalid.call >= delivery.call


class View:
    """What one reader can see now."""

    def __init__(self) -> None:
        self.calls = 0  # calls of the session so far, forgotten ones included
        self.tokens = 0  # tokens delivered so far
        self.counts: Counter[str] = Counter()
        self.last_write: Invalidation | None = None
        self.cut: dict[str, int] = {}  # call id -> the newest call when its text lost lines: older markers may dangle
        self._omitted: dict[str, int] = {}  # request -> call at which its last answer left something out
        self._written = (0, 0)  # the last two calls in which the agent wrote: a call's own write comes before its read
        self._passed: list[int] = []  # calls that left something out or were repeats, ascending
        self._deliveries: dict[str, list[Delivery]] = {}
        self._keys: dict[str, KeyView] = {}
        self._sorted_keys: list[str] = []
        self._new_keys: list[str] = []  # still to be sorted in: a log is folded without anybody asking for them
        self._by_name: dict[str, list[str]] = {}
        self._wholes: dict[str, Delivery] = {}
        self._answers: dict[str, Delivery] = {}  # request -> see `answer_to`
        self._call_of: dict[str, int] = {}
        self._split: OrderedDict[tuple[Delivery, int, int, str | None], list[str]] = OrderedDict()
        self._split_lines = 0

    # ------------------------------------------------------------ reading

    def covers(self, path: str, start: int, end: int) -> bool:
        """Are lines start to end of the file as it is (as far as is known) all visible?"""
        spans = tuple((s, e) for s, e, _ in self.key(path).numbered.overlaps(start, end))
        return not subtract(((start, end),), spans)

    @property
    def deliveries(self) -> list[Delivery]:
        """What is visible, oldest first."""
        return sorted((d for ds in self._deliveries.values() for d in ds), key=lambda d: d.call)

    def key(self, key: str) -> KeyView:
        """What is known of a key; an empty `KeyView` for one that was never seen."""
        return self._keys.get(key) or KeyView()

    def known_keys(self, prefix: str = "") -> list[str]:
        """The keys that were seen, sorted; those that begin with `prefix`."""
        self._sort_keys()
        low = bisect_left(self._sorted_keys, prefix)
        high = bisect_left(self._sorted_keys, prefix + "\U0010ffff", low)
        return self._sorted_keys[low:high]

    def namesakes(self, key: str) -> list[str]:
        """Keys that end in the same file name, this one among them; the `MOST_NAMESAKES` seen first most recently."""
        return self._by_name.get(_name(key), [])[: -MOST_NAMESAKES - 1 : -1]

    def whole(self, digest: str) -> Delivery | None:
        """The newest visible result whose text has this digest."""
        return self._wholes.get(digest)

    def answer_to(self, request: str) -> Delivery | None:
        """The newest visible answer to this very request that is one stretch of one file's lines and nothing else."""
        return self._answers.get(request)

    def is_visible(self, call_id: str) -> bool:
        """Does anything of this call still stand before the reader?"""
        return call_id in self._deliveries

    def holds(self, delivery: Delivery) -> bool:
        """Is this very delivery still visible?"""
        return any(d is delivery for d in self.of_call(delivery.event.call_id))

    def number_of(self, call_id: str) -> int:
        """The number that an event of this call has: that of the call now under way, or the next one."""
        return self.calls if self.calls and self._call_of.get(call_id) == self.calls else self.calls + 1

    def calls_since_omission(self, request: str, call: int) -> int | None:
        """Calls between the last answer to `request` that left something out and call number `call`, other such answers
        and repeats of them not counted. None when the last answer was whole, or when the agent wrote in between: who
        reads again after a write asks for news."""
        at = self._omitted.get(request)
        if at is None or any(at < written < call for written in self._written):
            return None
        return call - 1 - at - (len(self._passed) - bisect_right(self._passed, at))

    def of_call(self, call_id: str) -> list[Delivery]:
        """The visible texts of one call: its result, its own command."""
        return self._deliveries.get(call_id, [])

    def bodies(self, reference: Reference) -> list[str]:
        """The reference's lines without the numbers in front of them."""
        cached = (reference.delivery, reference.piece.at, reference.piece.count, reference.piece.sep)
        lines = self._split.get(cached)
        if lines is not None:
            self._split.move_to_end(cached)
            return lines
        piece = reference.piece
        lines = text_.split_lines(reference.delivery.event.text)[piece.at : piece.at + piece.count]
        lines = text_.bodies(lines, piece.sep)
        self._split[cached] = lines
        self._split_lines += len(lines)
        while self._split_lines > CACHED_LINES and len(self._split) > 1:
            self._split_lines -= len(self._split.popitem(last=False)[1])
        return lines

    # ------------------------------------------------------------ folding

    def apply(self, event: Event) -> None:
        """Take one more event of the log."""
        if isinstance(event, Delivered):
            self._deliver(event)
        elif isinstance(event, Wrote):
            self._write(event)
        elif isinstance(event, Settled):
            self._settle(event)
        elif isinstance(event, Compacted):
            self._forget([c for c in self._deliveries if c not in event.kept])
        elif isinstance(event, Forgot):
            self._forget([c for c in event.call_ids if c in self._deliveries])
        elif isinstance(event, Rewound):
            after = self._call_of.get(event.call_id, -1)
            self._forget([c for c in self._deliveries if self._call_of[c] > after])
            self._omitted = {request: call for request, call in self._omitted.items() if call <= after}
        elif isinstance(event, Failed):
            self.counts[event.cause] += 1

    def _deliver(self, event: Delivered) -> None:
        earlier = self._deliveries.get(event.call_id)
        if earlier and any(d.event.origin is event.origin or d.call != event.call for d in earlier):
            self._forget([event.call_id])  # an id used twice names only the newer text
            self.cut[event.call_id] = self.calls
        self.calls = self._call_of[event.call_id] = event.call
        self.tokens = event.tokens_so_far
        delivery = Delivery(event)
        self._deliveries.setdefault(event.call_id, []).append(delivery)
        for key in event.changed:
            self._invalidate(key, Invalidation(event.call - 1, written=False))
        self._add_references(delivery)
        self._count(event)

    def _count(self, event: Delivered) -> None:
        if event.origin is not Origin.RESULT or not event.request:
            return
        self.counts["calls"] += 1
        self.counts[event.reason.value] += 1
        self.counts["output_chars"] += event.output_chars
        self.counts["shown_chars"] += len(event.text)
        advised = event.outcome is Outcome.FULL
        self.counts["tokens_saved_if_on" if advised else "tokens_saved"] += event.tokens_saved
        if event.outcome is Outcome.FULL:
            self._omitted.pop(event.request, None)
        else:
            self._omitted[event.request] = event.call
            if len(self._omitted) > MOST_REPEATS:
                del self._omitted[next(iter(self._omitted))]
        if event.outcome is not Outcome.FULL or event.reason is Reason.INSISTED:
            self._passed.append(event.call)
            del self._passed[:-MOST_REPEATS]

    def _add_references(self, delivery: Delivery) -> None:
        event = delivery.event
        for piece in event.pieces:
            for key in piece.keys:
                self._key(key).add(Reference(delivery, piece))
        if _counts_as_whole(event):
            self._wholes[text_.digest(event.text)] = delivery
            if event.request and _is_one_stretch(event):
                self._answers[event.request] = delivery

    def _key(self, key: str) -> KeyView:
        found = self._keys.get(key)
        if found is None:
            found = self._keys[key] = KeyView()
            self._new_keys.append(key)
            self._by_name.setdefault(_name(key), []).append(key)
        return found

    def _sort_keys(self) -> None:
        if len(self._new_keys) < FEW_KEYS:
            for key in self._new_keys:
                insort(self._sorted_keys, key)
        else:
            self._sorted_keys += self._new_keys
            self._sorted_keys.sort()
        self._new_keys.clear()

    def _write(self, event: Wrote) -> None:
        if event.call_id:  # else another context of the session wrote
            self.calls = self._call_of[event.call_id] = event.call
        if self.calls != self._written[1]:
            self._written = (self._written[1], self.calls)
        step = Invalidation(self.calls, written=True, label=event.label)
        self.last_write = step
        for key in event.keys:
            if key != WHOLE_TREE:  # any file, perhaps: the bytes decide when one is read again
                self._invalidate(key, step)

    def _invalidate(self, path: str, step: Invalidation) -> None:
        """A write to a file, to a directory (everything below), or to a glob's files."""
        below = path.rstrip("/") + "/"
        stem = glob_stem(path)
        for key in self.known_keys(path if stem is None else stem):
            name = path_of(key)
            if name == path or key.startswith(below) or (stem is not None and fnmatchcase(name, path)):
                self._keys[key].invalidate(step)

    def _settle(self, event: Settled) -> None:
        for old in self._deliveries.get(event.call_id, []):
            if old.event.origin is event.origin:
                if lost_lines(old.event, event.text):
                    self.cut[event.call_id] = self.calls
                changed = replace(old.event, text=event.text, pieces=event.pieces, pointers=event.pointers)
                self._replace(old, Delivery(changed))

    def _replace(self, old: Delivery, new: Delivery) -> None:
        texts = self._deliveries[old.event.call_id]
        texts[texts.index(old)] = new
        self._drop_whole(old)
        for key in {k for piece in old.event.pieces for k in piece.keys}:
            moved = [Reference(new, piece) for piece in new.event.pieces if key in piece.keys]
            self._keys[key] = self._keys[key].changed(partial(_put, old, moved))
        if _counts_as_whole(new.event):
            self._wholes[text_.digest(new.event.text)] = new

    def _drop_whole(self, delivery: Delivery) -> None:
        if self._answers.get(delivery.event.request) is delivery:
            del self._answers[delivery.event.request]
        digest = text_.digest(delivery.event.text)
        if self._wholes.get(digest) is delivery:
            del self._wholes[digest]

    def _forget(self, call_ids: list[str]) -> None:
        gone = {id(d) for call_id in call_ids for d in self._deliveries[call_id]}
        keys = {
            key
            for call_id in call_ids
            for delivery in self._deliveries[call_id]
            for piece in delivery.event.pieces
            for key in piece.keys
        }
        for call_id in call_ids:
            for delivery in self._deliveries.pop(call_id):
                self._drop_whole(delivery)
            del self._call_of[call_id]
        for key in keys:
            self._keys[key] = self._keys[key].changed(lambda known: [r for r in known if id(r.delivery) not in gone])
        self._drop_empty(keys)
        self._split.clear()
        self._split_lines = 0

    def _drop_empty(self, keys: Iterable[str]) -> None:
        for key in [key for key in keys if not any(True for _ in self._keys[key].references())]:
            del self._keys[key]
        self._sort_keys()
        self._sorted_keys = [key for key in self._sorted_keys if key in self._keys]
        for name in set(map(_name, keys)):
            self._by_name[name] = [key for key in self._by_name[name] if key in self._keys]


def _counts_as_whole(event: Delivered) -> bool:
    """May the text as a whole stand for an equal output?"""
    whole = event.origin is Origin.RESULT and not event.pointers and event.reason not in UNCREDITED
    return whole and len(event.text) >= SHORTEST_WHOLE


def _is_one_stretch(event: Delivered) -> bool:
    if len(event.pieces) != 1 or len(event.pieces[0].keys) != 1 or not event.pieces[0].first:
        return False
    return event.pieces[0].count == text_.count_lines(event.text)


def _put(old: Delivery, new: list[Reference], known: list[Reference]) -> list[Reference]:
    """`known` with `new` in the place of the references to `old`."""
    out: list[Reference] = []
    for reference in known:
        if reference.delivery is not old:
            out.append(reference)
        elif not out or out[-1] not in new:
            out += new
    return out


def _name(key: str) -> str:
    return key.rsplit("/", 1)[-1]
