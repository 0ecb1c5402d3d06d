"""Numbers before lines: the separator that follows them, and the lines of the file that they name.

A tool may write `12: x` for the line "x" or for the line " x". The bytes decide. A separator is known if two non-blank
lines, read with it, equal visible lines with the same numbers whose own separator is not in doubt. Otherwise, the
separator that the host's adapter names counts, and then the formats of known tools. A wrong separator never causes an
omission: `Proof` requires the same two lines before lines with one separator can replace lines with another.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from readcache.core.model.call import BASH, READ
from readcache.core.model.claims import FileLines
from readcache.core.model.events import MappedSpan
from readcache.core.model.key_view import VisibleSpan
from readcache.core.model.text import (
    GREP,
    SAME_LINES,
    bodies,
    find_numbering,
    is_blank,
    is_doubtful,
    split_lines,
    split_number,
)
from readcache.core.model.view import View

_NEWEST = 8  # newest spans of a file that are searched for a separator, or whose own is not known


def find_claimed_separator(claim: FileLines, lines: Sequence[str], view: View) -> tuple[str, ...]:
    """Return the separator of the lines as a tuple: () if they have no numbers, ("",) if it is not known."""
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
    """Return lines low to high of the file, by their numbers, if they are visible and their separator is certain."""
    out: dict[int, str] = {}
    if len(keys) != 1:
        return out
    for first, last, visible in view.key(keys[0]).numbered.overlaps(low, high):
        there, texts = visible.mapped.first, view.bodies(visible)
        if _is_certain_there(visible, texts):
            out.update(enumerate(texts[first - there : last - there + 1], first))
    return out


def _borne_out(seps: Sequence[str], lines: Sequence[str], known: Mapping[int, str]) -> str | None:
    """Return the only separator with which known lines are the same. Return None if there is none, or more than one.

    At least `SAME_LINES` lines must be the same, and more than half.
    """
    found = []
    for sep in seps:
        pairs = (pair for line in lines if (pair := split_number(line, sep)) is not None)
        said = _compare((body, known[number]) for number, body in pairs if number in known)
        found += [(sep, said)] if any(said) else []
    return found[0][0] if len(found) == 1 and _is_proof(found[0][1]) else None


def _compare(pairs: Iterable[tuple[str, str]]) -> list[bool]:
    """Return for each non-blank line if it is the same in both."""
    return [ours == theirs for ours, theirs in pairs if not is_blank(ours)]


def _is_proof(said: Sequence[bool]) -> bool:
    return sum(said) >= max(SAME_LINES, len(said) // 2 + 1)


def _earlier_separator(
    candidates: Sequence[str], keys: tuple[str, ...], lines: Sequence[str], view: View
) -> str | None:
    """Return the separator of an earlier span of the file that contains some of exactly these lines, numbers included.

    At least `SAME_LINES` lines must be the same. Return None if there is no such span.
    """
    ours = {line for line in lines if not is_blank(line)}
    for key in keys:
        numbered = (r for r in view.key(key).visible_spans() if r.mapped.sep in candidates)
        for visible in itertools.islice(numbered, _NEWEST):
            mapped = visible.mapped
            theirs = split_lines(visible.event.text)[mapped.at : mapped.at + mapped.count]
            if len(ours.intersection(theirs)) >= SAME_LINES:
                return mapped.sep
    return None


# ---------------------------------------------------------------- lines with one separator that replace others


class Proof:
    """A check whether lines of an output may replace lines with another separator.

    They may if no blank at the beginning of either is in doubt. `lines`: the lines of the output.
    """

    def __init__(self, view: View, lines: Sequence[str]) -> None:
        self._view, self._lines = view, lines
        self._certain: dict[VisibleSpan, bool] = {}

    def allows(self, visible: VisibleSpan, mapped: MappedSpan) -> bool:
        """Return True if lines of `visible` may replace lines of `mapped`.

        Both have the same separator, or separators that are right for any tool, or the file has the same lines at the
        same numbers with both.
        """
        ours, theirs = mapped, visible.mapped
        if ours.sep == theirs.sep or not (is_doubtful(ours.sep) or is_doubtful(theirs.sep)):
            return True
        here = bodies(self._lines[ours.at : ours.at + ours.count], ours.sep)
        if _is_certain(ours.sep, here) and self._is_certain_there(visible):
            return True
        low, high = max(ours.first, theirs.first), min(ours.first + ours.count, theirs.first + theirs.count)
        if ours.keys != theirs.keys or len(ours.keys) != 1 or not (ours.first and theirs.first) or low >= high:
            return False
        there = self._view.bodies(visible)[low - theirs.first : high - theirs.first]
        return _is_proof(_compare(zip(here[low - ours.first : high - ours.first], there, strict=True)))

    def _is_certain_there(self, visible: VisibleSpan) -> bool:
        if visible not in self._certain:  # looked up once for all spans of the output
            self._certain[visible] = _is_certain_there(visible, self._view.bodies(visible))
        return self._certain[visible]


def _is_certain(sep: str | None, texts: Sequence[str]) -> bool:
    """Return True if the separator is right for any tool.

    It is right if its form is not doubtful. Otherwise it must not end with a blank, and at least one line must not
    begin with a blank.
    """
    return not is_doubtful(sep) or (not str(sep).endswith(" ") and any(text[:1] not in ("", " ") for text in texts))


def _is_certain_there(visible: VisibleSpan, texts: Sequence[str]) -> bool:
    """Return True if the separator of visible lines is right.

    For a bash command it is, because its arguments determine it.
    """
    return _is_certain(visible.mapped.sep, texts) or _tool(visible) == BASH


def _tool(visible: VisibleSpan) -> str:
    return visible.event.account.tool if visible.event.account is not None else ""


def find_late(view: View, source_map: Sequence[MappedSpan], lines: Sequence[str]) -> Iterator[VisibleSpan]:
    """Yield spans that a read tool showed with numbers in a form that only this output makes known.

    The span and this output must agree about every line of the file that both show.
    """
    known: dict[str, dict[int, str]] = {}
    for mapped in source_map:
        if len(mapped.keys) == 1 and mapped.first and view.key(mapped.keys[0]).loose:
            texts = bodies(lines[mapped.at : mapped.at + mapped.count], mapped.sep)
            if _is_certain(mapped.sep, texts):
                known.setdefault(mapped.keys[0], {}).update(enumerate(texts, mapped.first))
    for key, ours in known.items():
        loose = (r for r in reversed(view.key(key).loose) if r.mapped.sep is None and _tool(r) == READ)
        for visible in itertools.islice(loose, _NEWEST):
            theirs = view.bodies(visible)
            numbering = find_numbering(theirs)
            sep = _borne_out(numbering.possible, theirs, ours) if numbering is not None else None
            for found in map_numbered(FileLines((key,), sep=sep), theirs, 0, len(theirs), alone=True) if sep else ():
                shown = bodies(theirs[found.at : found.at + found.count], sep)
                if all(ours.get(number, text) == text for number, text in enumerate(shown, found.first)):
                    yield VisibleSpan(visible.delivery, replace(found, at=visible.mapped.at + found.at))


# ---------------------------------------------------------------- the lines that numbers name


def map_numbered(claim: FileLines, lines: Sequence[str], low: int, high: int, *, alone: bool) -> list[MappedSpan]:
    """Return the mapped spans of lines whose numbers rise one by one and are claimed.

    If the claim is `alone`, a span may begin with claimed lines and continue after them: tools count a limit in
    different ways.
    """
    sep = GREP if claim.gaps and claim.sep == ":" else claim.sep
    assert sep is not None
    out: list[MappedSpan] = []
    start, first, number = low, 0, 0
    for at in range(low, high + 1):
        pair = split_number(lines[at], sep) if at < high else None
        if pair is not None and first and pair[0] == number + 1 and (alone or is_claimed(pair[0], claim)):
            number += 1
            continue
        if first:
            out.append(MappedSpan(claim.keys, start, at - start, first - claim.shift, sep, claim.shift))
            first = 0
        if pair is not None and is_claimed(pair[0], claim):
            start, first, number = at, pair[0], pair[0]
    if claim.gaps:
        out = [mapped for mapped in out if mapped.count > 1]  # a single hit never saves as much as its marker costs
    return out


def is_claimed(shown: int, claim: FileLines) -> bool:
    """Return True if the claim includes the line with the number `shown` in the output."""
    start, end = claim.lines or (1, None)
    return start <= shown - claim.shift and (end is None or shown - claim.shift <= end)
