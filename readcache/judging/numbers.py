"""Numbers before lines: which separator stands after them, and which lines of the file they are.

A tool may write `12: x` for the line "x" or for the line " x". The bytes decide: a separator is known if under it two
lines that say something are the lines with these numbers that the reader sees without doubt. What the host's adapter
says comes next, then what known tools write. A wrong separator never makes an omission, because `Proof` asks for the
same two lines before numbered lines and others stand for one another.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from readcache.model.call import BASH, READ
from readcache.model.claims import FileLines
from readcache.model.events import Piece
from readcache.model.key_view import Reference
from readcache.model.text import (
    GREP,
    bodies,
    find_numbering,
    is_blank,
    is_doubtful,
    split_lines,
    split_number,
)
from readcache.model.view import View

# So many lines that say something must be the same to tell that a tool numbers its lines as it did before.
SAME_LINES = 2
_NEWEST = 8  # showings of a file in which a separator is looked for, or whose own is not known


def find_claimed_separator(claim: FileLines, lines: Sequence[str], view: View) -> tuple[str, ...]:
    """Return the separator of the lines: () if they have no numbers, ("",) if it is not known."""
    numbering = find_numbering(lines)
    if numbering is None:
        return ()
    possible, likely, last = numbering
    if not is_doubtful(possible[0] if possible else None):
        return likely
    known = _lines_known(view, claim.keys, last - len(lines) + 1, last)
    sep = _borne_out(possible, lines, known) if known else None
    if sep is None and claim.likely in possible:
        sep = claim.likely
    if sep is None and len(likely) == 1:
        sep = likely[0]
    return (sep or _earlier_separator(possible, claim.keys, lines, view) or "",)


def _lines_known(view: View, keys: Sequence[str], low: int, high: int) -> dict[int, str]:
    """Lines low to high of the file, where they are visible and their separator is beyond doubt."""
    out: dict[int, str] = {}
    if len(keys) != 1:
        return out
    for first, last, reference in view.key(keys[0]).numbered.overlaps(low, high):
        there, texts = reference.piece.first, view.bodies(reference)
        if _is_sure_there(reference, texts):
            out.update(enumerate(texts[first - there : last - there + 1], first))
    return out


def _borne_out(seps: Sequence[str], lines: Sequence[str], known: Mapping[int, str]) -> str | None:
    """The only separator under which known lines are the same: `SAME_LINES` at least, and more than differ."""
    found = []
    for sep in seps:
        pairs = (pair for line in lines if (pair := split_number(line, sep)) is not None)
        said = _compare((body, known[number]) for number, body in pairs if number in known)
        found += [(sep, said)] if any(said) else []
    return found[0][0] if len(found) == 1 and _is_proof(found[0][1]) else None


def _compare(pairs: Iterable[tuple[str, str]]) -> list[bool]:
    """For each line that says something: is it the same?"""
    return [ours == theirs for ours, theirs in pairs if not is_blank(ours)]


def _is_proof(said: Sequence[bool]) -> bool:
    return sum(said) >= max(SAME_LINES, len(said) // 2 + 1)


def _earlier_separator(
    candidates: Sequence[str], keys: tuple[str, ...], lines: Sequence[str], view: View
) -> str | None:
    """The separator of an earlier showing of the file that has some of these very lines, numbers included."""
    ours = {line for line in lines if not is_blank(line)}
    for key in keys:
        numbered = (r for r in view.key(key).references() if r.piece.sep in candidates)
        for reference in itertools.islice(numbered, _NEWEST):
            piece = reference.piece
            theirs = split_lines(reference.event.text)[piece.at : piece.at + piece.count]
            if len(ours.intersection(theirs)) >= SAME_LINES:
                return piece.sep
    return None


# ---------------------------------------------------------------- lines of one form for lines of another


class Proof:
    """Whether lines of an output may stand for lines with another separator: True if no blank at their beginning is in
    doubt. `lines`: of the output."""

    def __init__(self, view: View, lines: Sequence[str]) -> None:
        self._view, self._lines = view, lines
        self._sure: dict[Reference, bool] = {}

    def allows(self, reference: Reference, piece: Piece) -> bool:
        """True if both have the same separator, or separators that are right whatever the tools are, or if the file has
        the same lines at the same numbers under both."""
        ours, theirs = piece, reference.piece
        if ours.sep == theirs.sep or not (is_doubtful(ours.sep) or is_doubtful(theirs.sep)):
            return True
        here = bodies(self._lines[ours.at : ours.at + ours.count], ours.sep)
        if _is_sure(ours.sep, here) and self._is_sure_there(reference):
            return True
        low, high = max(ours.first, theirs.first), min(ours.first + ours.count, theirs.first + theirs.count)
        if ours.keys != theirs.keys or len(ours.keys) != 1 or not (ours.first and theirs.first) or low >= high:
            return False
        there = self._view.bodies(reference)[low - theirs.first : high - theirs.first]
        return _is_proof(_compare(zip(here[low - ours.first : high - ours.first], there, strict=True)))

    def _is_sure_there(self, reference: Reference) -> bool:
        if reference not in self._sure:  # looked up once, however many pieces the output has
            self._sure[reference] = _is_sure_there(reference, self._view.bodies(reference))
        return self._sure[reference]


def _is_sure(sep: str | None, texts: Sequence[str]) -> bool:
    """True if the separator is right whatever the tool is: it has no blank at its end, and a line does not begin with
    one."""
    return not is_doubtful(sep) or (not str(sep).endswith(" ") and any(text[:1] not in ("", " ") for text in texts))


def _is_sure_there(reference: Reference, texts: Sequence[str]) -> bool:
    """The same of what was shown. The words of a command say what it writes."""
    return _is_sure(reference.piece.sep, texts) or _tool(reference) == BASH


def _tool(reference: Reference) -> str:
    return reference.event.account.tool if reference.event.account is not None else ""


def find_late(view: View, pieces: Sequence[Piece], lines: Sequence[str]) -> Iterator[Reference]:
    """Yield what a read tool showed with numbers of a form that is known only now: the lines of this output tell it.
    The file must not differ from this output where both show it."""
    known: dict[str, dict[int, str]] = {}
    for piece in pieces:
        if len(piece.keys) == 1 and piece.first and view.key(piece.keys[0]).loose:
            texts = bodies(lines[piece.at : piece.at + piece.count], piece.sep)
            if _is_sure(piece.sep, texts):
                known.setdefault(piece.keys[0], {}).update(enumerate(texts, piece.first))
    for key, ours in known.items():
        loose = (r for r in reversed(view.key(key).loose) if r.piece.sep is None and _tool(r) == READ)
        for reference in itertools.islice(loose, _NEWEST):
            theirs = view.bodies(reference)
            numbering = find_numbering(theirs)
            sep = _borne_out(numbering.possible, theirs, ours) if numbering is not None else None
            for found in numbered_pieces(FileLines((key,), sep=sep), theirs, 0, len(theirs), alone=True) if sep else ():
                shown = bodies(theirs[found.at : found.at + found.count], sep)
                if all(ours.get(number, text) == text for number, text in enumerate(shown, found.first)):
                    yield Reference(reference.delivery, replace(found, at=reference.piece.at + found.at))


# ---------------------------------------------------------------- the lines that numbers name


def numbered_pieces(claim: FileLines, lines: Sequence[str], low: int, high: int, *, alone: bool) -> list[Piece]:
    """Pieces of the lines whose numbers rise one by one and are claimed. A claim that stands `alone` may begin with
    what was claimed and go on beyond: tools count a limit in different ways."""
    sep = GREP if claim.gaps and claim.sep == ":" else claim.sep
    assert sep is not None
    out: list[Piece] = []
    start, first, number = low, 0, 0
    for at in range(low, high + 1):
        pair = split_number(lines[at], sep) if at < high else None
        if pair is not None and first and pair[0] == number + 1 and (alone or is_claimed(pair[0], claim)):
            number += 1
            continue
        if first:
            out.append(Piece(claim.keys, start, at - start, first - claim.shift, sep, claim.shift))
            first = 0
        if pair is not None and is_claimed(pair[0], claim):
            start, first, number = at, pair[0], pair[0]
    if claim.gaps:
        out = [piece for piece in out if piece.count > 1]  # lone hits can never make up for a marker
    return out


def is_claimed(shown: int, claim: FileLines) -> bool:
    """True if the claim says that the line with this number in the output was printed."""
    start, end = claim.lines or (1, None)
    return start <= shown - claim.shift and (end is None or shown - claim.shift <= end)
