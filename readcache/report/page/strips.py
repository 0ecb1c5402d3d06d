"""Which lines of a file were visible when: bars over the steps of a reader's time line, from the view itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from readcache.model.key_view import KeyView, Reference
from readcache.model.spans import Spans, merge_spans, subtract
from readcache.model.view import View

_State = tuple[KeyView | None, int, int, int]


class Bar(NamedTuple):
    """Lines `first` to `last` were visible from step `since` up to step `until`, that one excluded."""

    since: int
    until: int
    first: int
    last: int


@dataclass
class _Shade:
    """The bars of one kind: those that ended, and the stretches that go on."""

    bars: list[Bar] = field(default_factory=list)
    spans: Spans = ()
    _open: list[tuple[int, int, int]] = field(default_factory=list)  # (since, first, last)

    def change(self, spans: Spans, at: int) -> None:
        """From step `at` on it is these lines."""
        if spans == self.spans:
            return
        gone, still = subtract(self.spans, spans), []
        for since, first, last in self._open:
            kept = subtract(((first, last),), gone)
            still += [(since, *span) for span in kept]
            if since < at:
                self.bars += [Bar(since, at, *span) for span in subtract(((first, last),), kept)]
        self._open = still + [(at, *span) for span in subtract(spans, self.spans)]
        self.spans = spans


@dataclass
class Strip:
    """One key's time line. `current`: of the file as it is known to be; `stale`: as it was before a write or change."""

    key: str
    current: _Shade = field(default_factory=_Shade)
    stale: _Shade = field(default_factory=_Shade)
    calls: list[int] = field(default_factory=list)  # steps that showed lines of it, or left some out
    writes: list[int] = field(default_factory=list)  # steps at which what was visible of it became stale
    left_out: int = 0  # lines
    known: _State | None = None  # what it was drawn from last

    @property
    def lines(self) -> int:
        """The highest line number that was ever visible."""
        return max((bar.last for bar in (*self.current.bars, *self.stale.bars)), default=0)


class Strips:
    """The strips of one reader, brought up to date after each step."""

    def __init__(self) -> None:
        self.by_key: dict[str, Strip] = {}

    def of(self, key: str) -> Strip:
        """The key's strip; a new one where there is none yet."""
        return self.by_key.setdefault(key, Strip(key))

    def look(self, view: View, at: int, keys: Iterable[str] | None) -> None:
        """After step `at` this is the view; `keys`: which may have changed, None for any."""
        for key in {*self.by_key, *view.known_keys()} if keys is None else keys:
            known, strip = view.key(key), self.of(key)
            state = _state(known)
            if state == strip.known:
                continue
            if strip.known is not None and known.stale_before > strip.known[-1]:
                strip.writes.append(at)
            current = visible_spans(known.current)
            strip.known = state
            strip.current.change(current, at)
            strip.stale.change(subtract(visible_spans(known.stale), current), at)

    def end(self, at: int) -> list[Strip]:
        """The time line ends before step `at`; the strips that show anything, those with the most calls first."""
        for strip in self.by_key.values():
            strip.current.change((), at)
            strip.stale.change((), at)
        drawn = [strip for strip in self.by_key.values() if strip.lines]
        return sorted(drawn, key=lambda strip: (-strip.left_out, -len(strip.calls), strip.key))


def visible_spans(references: Iterable[Reference]) -> Spans:
    """The numbered lines of these references."""
    pieces = (reference.piece for reference in references)
    return merge_spans((piece.first, piece.first + piece.count - 1) for piece in pieces if piece.first)


def _state(known: KeyView) -> _State:
    """Differs whenever the key's visible lines do: the view adds to its lists, or makes a new `KeyView`."""
    current, stale = len(known.current), len(known.stale)
    return known if current or stale else None, current, stale, known.stale_before
