"""Where any visible line stands, for `Policy.any_output`: the one structure that looks at every line of every output.

Built only when first asked for, kept up to date afterwards. It proposes places; `cover.find_runs` compares the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from readcache.events import Origin, Piece
from readcache.text import is_blank, split_lines
from readcache.view import Delivery, Reference, View

# Places proposed for one output: beyond, the next one hardly ever adds a run (replay of the recorded sessions).
MOST_PROPOSED = 16


class LineIndex:
    """The newest place of each visible line that says something, by the line's hash."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}  # hash of a line -> index into _references
        self._references: list[Reference] = []

    def add(self, delivery: Delivery) -> None:
        """The lines of one more delivery; the lines that are markers stay out."""
        lines = split_lines(delivery.event.text)
        for piece in _between_markers(delivery, len(lines)):
            self._references.append(Reference(delivery, piece))
            place = len(self._references) - 1
            for line in lines[piece.at : piece.at + piece.count]:
                if not is_blank(line):
                    self._places[hash(line)] = place

    def propose(self, lines: Sequence[str]) -> list[Reference]:
        """The references in which most of `lines` stand, best first."""
        votes: Counter[int] = Counter()
        for line in lines:
            place = self._places.get(hash(line))
            if place is not None and not is_blank(line):
                votes[place] += 1
        return [self._references[place] for place, _ in votes.most_common(MOST_PROPOSED)]


def _between_markers(delivery: Delivery, count: int) -> Iterable[Piece]:
    at = 0
    for line in [*sorted(pointer.line for pointer in delivery.event.pointers), count]:
        if line > at:
            yield Piece((), at, line - at)
        at = line + 1


def build_index(view: View) -> LineIndex:
    """The index of all that is visible now."""
    index = LineIndex()
    for delivery in view.deliveries:
        if delivery.event.origin is not Origin.COMMAND:
            index.add(delivery)
    return index
