"""Which reads are outdated: a later one shows their lines as they are since, and where a cut there pays for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from readcache.model.events import Piece
from readcache.model.policy import Prices
from readcache.model.text import bodies, split_lines


class LaterReads:
    """The lines of one file that the later reads show, taken in from the last to the first: the newest count."""

    def __init__(self) -> None:
        self.is_whole = False  # does one of them show the whole file?
        self._top = 0  # so many of its first lines does one of them show
        self._lines: dict[int, str] = {}
        self._texts: set[str] = set()

    def add(self, text: str, piece: Piece) -> None:
        """Takes in lines that a result shows."""
        shown = _numbered(text, piece)
        for number, line in shown.items():
            self._lines.setdefault(number, line)
        self._texts.update(shown.values())
        if piece.first == 1:
            self._top = max(self._top, piece.count)
            self.is_whole |= piece.eof

    def outdate(self, text: str, pieces: Sequence[Piece]) -> bool:
        """True if the lines of an earlier read were all read again, and the file had changed by then. In the middle of
        a file their numbers do not prove it, as the change may have moved them: the first and the last must be there
        again."""
        shown: dict[int, str] = {}
        for piece in pieces:
            shown |= _numbered(text, piece)
        is_covered = self.is_whole or max(shown) <= self._top
        if not is_covered and shown.keys() <= self._lines.keys():
            is_covered = self._texts >= {shown[min(shown)], shown[max(shown)]}
        return is_covered and any(self._lines.get(number) != line for number, line in shown.items())


def _numbered(text: str, piece: Piece) -> dict[int, str]:
    lines = split_lines(text)[piece.at : piece.at + piece.count]
    return dict(enumerate(bodies(lines, piece.sep), piece.first))


def first_that_pays(sizes: Sequence[int], saved: Mapping[int, int], changed: int, prices: Prices) -> int:
    """The first message at which a cut pays for the prompt cache that it breaks.

    `sizes` of the messages; `saved` in some of them. From message `changed` on the cache is broken anyway, and what is
    saved costs nothing.
    """
    best, first = 0.0, changed
    gain, left = 0, 0
    for at in range(changed - 1, -1, -1):
        gain += saved.get(at, 0)
        left += sizes[at] - saved.get(at, 0)
        worth = gain * prices.read * prices.turns - left * (prices.write - prices.read)
        if at in saved and worth > best:
            best, first = worth, at
    return first
