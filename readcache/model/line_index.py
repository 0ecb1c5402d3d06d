"""Where any visible line stands, for `Policy.any_output`: the one structure that looks at every line of every output.

Built only when first asked for, kept up to date afterwards. It proposes places; `cover.find_runs` compares the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from readcache.model.diffs import find_hunks
from readcache.model.events import Piece
from readcache.model.hits import find_hits
from readcache.model.key_view import Delivery, Reference
from readcache.model.text import bodies, is_blank, split_lines
from readcache.model.view import View

# Places proposed for one stretch of output; 48 instead save nothing more over the recorded sessions.
MOST_PROPOSED = 16


class LineIndex:
    """The newest place of each visible line that says something, by the hash of its body."""

    def __init__(self) -> None:
        self._anywhere: dict[int, int] = {}  # hash of a body -> index into _references
        self._numbered: dict[int, int] = {}  # the same, of bodies with numbers in front alone
        self._behind: dict[int, int] = {}  # the same, of lines in diffs and searches, without what stands in front
        self._references: list[Reference] = []

    def add(self, delivery: Delivery) -> None:
        """The lines of one more delivery; the lines that are markers stay out."""
        if not delivery.event.credited:
            return
        lines = split_lines(delivery.event.text)
        markers = {pointer.line for pointer in delivery.event.pointers}
        for piece in stretches(delivery.event.pieces, len(lines), markers):
            place = len(self._references)
            self._references.append(Reference(delivery, piece))
            for body in bodies(lines[piece.at : piece.at + piece.count], piece.sep):
                if not is_blank(body):
                    key = hash(body)
                    self._anywhere[key] = place
                    if piece.sep is not None:
                        self._numbered[key] = place
            if piece.sep is None:
                self._look_through(delivery, lines[piece.at : piece.at + piece.count], piece.at)

    def _look_through(self, delivery: Delivery, lines: Sequence[str], at: int) -> None:
        """Lines of files with something else in front of them."""
        for piece in (*find_hunks(lines), *find_hits(lines)):
            place = len(self._references)
            self._references.append(Reference(delivery, replace(piece, at=at + piece.at)))
            for body in bodies(lines[piece.at : piece.at + piece.count], piece.sep):
                if not is_blank(body):
                    self._behind[hash(body)] = place

    def propose(self, texts: Sequence[str], *, numbered: bool) -> list[Reference]:
        """The references in which most of these bodies stand, best first."""
        places = self._numbered if numbered else self._anywhere
        votes: Counter[int] = Counter()
        for body in texts:
            key = hash(body)
            for place in {places.get(key), self._behind.get(key)}:
                if place is not None and not is_blank(body):
                    votes[place] += 1
        return [self._references[place] for place, _ in votes.most_common(MOST_PROPOSED)]


def stretches(pieces: Iterable[Piece], count: int, markers: Iterable[int] = ()) -> Iterable[Piece]:
    """A text of `count` lines as pieces without a hole: the numbered ones as they are, all between them raw."""
    stops: list[tuple[int, int, Piece | None]] = [(line, line + 1, None) for line in markers]
    stops += [(p.at, p.at + p.count, p) for p in pieces if p.sep is not None]
    at = 0
    for low, high, piece in [*sorted(stops, key=lambda stop: stop[0]), (count, count, None)]:
        if low > at:
            yield Piece((), at, low - at)
        if piece is not None and low >= at:
            yield piece
        at = max(at, high)


def build_index(view: View) -> LineIndex:
    """The index of all that is visible now."""
    index = LineIndex()
    for delivery in view.deliveries:
        index.add(delivery)
    return index
