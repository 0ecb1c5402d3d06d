"""Map the lines of an output to lines of files.

A line gets a file line number only if the number is certain, because markers, `View.covers` and restore plans use it.
Other lines that may belong to the claimed files become spans without numbers. Coverage finds lines in them by their
text. A wrong span without numbers can only lose a saving, because `cover` compares the bytes of every line.

A number that the output prints is certain, unless an unknown program printed lines beside it. Lines without printed
numbers get numbers only if nothing else can be there:

- between landmarks: literal text that occurs at exactly one position (see `notices`);
- between borders that add up (`sed -n 1,40p a; sed -n 1,40p b` printed 80 lines), or that known lines confirm byte for
  byte: `sed -n 1,40p a; cat b` printed the lines 1 to 40 of a that were shown before;
- in the output of a command that succeeded, or that printed a landmark or lines shown before. Such lines get numbers
  only up to the line at which a tool or a host truncated the output, and only if no program complained.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from readcache.core.judging.notices import complains, find_complaints, find_landmarks, find_truncations, is_tool_json
from readcache.core.judging.numbers import find_claimed_separator, map_numbered
from readcache.core.model.claims import ANY_SEPARATOR, Anything, Claim, FileLines, Literal
from readcache.core.model.events import MappedSpan
from readcache.core.model.text import SAME_LINES, count_lines, is_blank, split_lines
from readcache.core.model.view import View

# A span between unknown borders names at most this many files. With more, coverage by text costs more than it finds.
MOST_KEYS = 12


@dataclass(frozen=True, slots=True)
class OutputFacts:
    """The facts that are known about an output before its lines are read."""

    complete: bool = True  # False: it was truncated, or its command ran out of time
    failed: bool = False  # its command exited with another status than 0
    wrote: bool = False  # its command wrote files: even a usually silent program may have printed why it failed
    uncut: bool = False  # nobody can have truncated it: readcache ran the command
    exact: bool = False  # it contains only lines of the file: readcache read them itself


def map_output(
    claims: Sequence[Claim], lines: Sequence[str], view: View, facts: OutputFacts = OutputFacts()
) -> tuple[MappedSpan, ...]:
    """Return the mapped spans of an output, in order."""
    keys = {key for claim in claims if isinstance(claim, FileLines) for key in claim.keys}
    if keys and not (facts.uncut or facts.exact) and is_tool_json(lines, keys):
        return ()
    known = [_with_separator(claim, lines, view) for claim in claims]
    if not lines or not any(isinstance(claim, FileLines) for claim in known):
        return ()
    return tuple(_Layout(lines, view, facts).source_map(known))


def _with_separator(claim: Claim, lines: Sequence[str], view: View) -> Claim:
    """Return the claim with the separator that the output shows.

    If the output shows no numbers, drop the claim. If the separator is not known, claim the lines as they are, numbers
    included.
    """
    if not isinstance(claim, FileLines) or claim.sep != ANY_SEPARATOR:
        return claim
    found = find_claimed_separator(claim, lines, view)
    if not found:
        return Anything()
    return replace(claim, sep=found[0]) if found[0] else replace(claim, sep=None, lines=None)


class _Block(NamedTuple):
    """Output lines low to high - 1, assigned to a claim."""

    claim: Claim
    low: int
    high: int
    is_full: bool  # there are as many as the claim can print
    is_seen: bool  # they were shown before for this claim, byte for byte


class _Layout:
    """The claims laid over the lines of one output. Ranges are of output lines, low to high - 1."""

    def __init__(self, lines: Sequence[str], view: View, facts: OutputFacts) -> None:
        self.lines = lines
        self.view = view
        self.facts = facts
        self.truncations: list[int] = []  # lines that report a truncation

    def source_map(self, claims: list[Claim]) -> list[MappedSpan]:
        """Return the mapped spans of the whole output."""
        count = len(self.lines)
        if not self.facts.complete:
            self.truncations = find_truncations(self.lines)
            return self._anywhere(claims, 0, count)
        only = claims[0]
        if len(claims) == 1 and isinstance(only, FileLines):
            return self._single(only, count)
        self.truncations = self._find_truncations()
        marks = find_landmarks(claims, self.lines)
        # A failed command that printed no landmark may never have run: `docker exec` prints a raw error text then.
        certain = not self.facts.failed or bool(marks)
        if self.truncations or (self.facts.failed and self.facts.wrote):
            return self._anywhere(claims, 0, count)
        known = {mark.claim for mark in marks}
        claims = [Anything() if _is_landmark(c) and n not in known else c for n, c in enumerate(claims)]
        out: list[MappedSpan] = []
        low = first = 0
        for mark in marks:
            out += self._section(claims[first : mark.claim], low, mark.low, certain, joined=mark.joined)
            low, first = mark.high, mark.claim + 1
        return out + self._section(claims[first:], low, count, certain)

    def _single(self, claim: FileLines, count: int) -> list[MappedSpan]:
        """Return the mapped spans of an output that belongs to one claim, up to the line at which it was truncated."""
        if claim.sep is not None:
            source_map = self._numbered(claim, 0, count, alone=True)
            if self.facts.failed and source_map:
                # If the last line had no newline, the failed command's error text is in it.
                source_map = _without_last(source_map)
            # If one span contains all lines, only its last line can be a notice.
            in_one_span = len(source_map) == 1 and source_map[0].count == count
            self.truncations = self._find_truncations(count - 1 if in_one_span else 0)
            return _complete_lines(source_map, self._beside_truncations())
        if self.facts.exact:
            return self._raw(claim, 0, count)
        if _most_lines(claim) != count:  # with exactly this many lines, it is complete
            self.truncations = self._find_truncations()
        failed = self.facts.failed and not self._is_known(claim)
        if failed or complains(self.lines[0]) or complains(self.lines[-1].strip()):
            return self._anywhere([claim], 0, count)
        end = min(self._beside_truncations(), default=count)
        return self._raw(claim, 0, end, ends=end == count) + self._anywhere([claim], end, count)

    def _find_truncations(self, low: int = 0) -> list[int]:
        if self.facts.uncut or self.facts.exact:
            return []
        return [low + at for at in find_truncations(self.lines[low:] if low else self.lines)]

    def _beside_truncations(self) -> set[int]:
        """Return the lines that report a truncation, and the lines before and after them, which may be incomplete."""
        out: set[int] = set(self.truncations)
        for truncation in self.truncations:
            for step in (-1, 1):
                at = truncation + step
                while 0 <= at < len(self.lines) and not self.lines[at].strip():
                    out.add(at)
                    at += step
                if 0 <= at < len(self.lines):
                    out.add(at)
        return out

    def _section(
        self, claims: list[Claim], low: int, high: int, certain: bool, *, joined: bool = False
    ) -> list[MappedSpan]:
        """Return the mapped spans of the lines between two landmarks.

        If not `certain`, raw lines get no numbers. `joined`: the last line is part of the landmark's first line, and is
        missing here.
        """
        if low >= high or not claims:
            return []
        last = claims[-1]
        if isinstance(last, FileLines) and last.sep is not None and len(claims) == 1:
            return self._numbered(last, low, high, alone=True)  # numbers identify lines at any position
        out: list[MappedSpan] = []
        if any(isinstance(claim, FileLines) and claim.sep is not None for claim in claims):
            if Anything() in claims:  # any program may print numbers
                return self._anywhere(claims, low, high)
            out, claims = self._numbered_in_front(claims, low, high)
            certain = False  # if a file has no newline at its end, its last line ends with the first line of the next
            low = out[-1].at + out[-1].count if out else low
        if not certain or find_complaints(self.lines[low:high]):
            return out + self._anywhere(claims, low, high)
        if len(claims) == 1:
            return out + (self._raw(last, low, high, ends=not joined) if isinstance(last, FileLines) else [])
        if joined:
            return out + self._anywhere(claims, low, high)
        return out + self._between_borders(claims, low, high)

    # ------------------------------------------------------------ one claim

    def _numbered_in_front(self, claims: list[Claim], low: int, high: int) -> tuple[list[MappedSpan], list[Claim]]:
        """Return the mapped spans of the numbered claims at the beginning of the section, and the remaining claims.

        Return no spans unless each numbered claim of the section has a run there that begins with the requested number.
        Without this rule, if a file printed nothing, it would get the lines of the next file.
        """
        out: list[MappedSpan] = []
        at, rest = low, list(claims)
        while rest and isinstance(claim := rest[0], FileLines) and claim.sep is not None and not claim.gaps:
            source_map = self._numbered(claim, at, high, alone=False)
            first = (claim.lines or (1, None))[0]
            if not source_map or source_map[0].at != at or source_map[0].first != first:
                return [], claims
            leading = _first_numbered(source_map)
            rest.pop(0)
            at = leading[-1].at + leading[-1].count
            out += leading
        if any(isinstance(claim, FileLines) and claim.sep is not None for claim in rest):
            return [], claims
        # If the last of these files has no newline at its end, its last line ends with the text that follows.
        return (out if not out or (at == high and not rest) else _without_last(out)), rest

    def _numbered(self, claim: FileLines, low: int, high: int, *, alone: bool) -> list[MappedSpan]:
        return map_numbered(claim, self.lines, low, high, alone=alone)

    def _raw(self, claim: FileLines, low: int, high: int, *, ends: bool = True) -> list[MappedSpan]:
        """Return the mapped spans of lines that the claim printed, all of them.

        If not `ends`, the claim printed more after them.
        """
        if claim.lines is None or len(claim.keys) != 1 or (claim.if_long and not self._is_borne_out(claim, low, high)):
            return self._anywhere([claim], low, high)
        count, most = high - low, _most_lines(claim)
        if most is not None and most < count:  # more lines than the command can print: another program printed some
            return self._anywhere([claim], low, high)
        is_end = ends and (most is None or count < most)
        return [MappedSpan(claim.keys, low, count, claim.lines[0], eof=is_end)] if count > 0 else []

    # ------------------------------------------------------------ several raw claims

    def _between_borders(self, claims: list[Claim], low: int, high: int) -> list[MappedSpan]:
        """Return the mapped spans of two or more claims without a landmark between them.

        If the lines of a claim are not proven, they may be lines of any file beside them that is not proven either.
        """
        blocks = self._lay_out(claims, low, high)
        certain = _certain_borders(blocks)
        out: list[MappedSpan] = []
        open_claims: list[Claim] = [] if blocks else claims
        for n, (claim, start, end, _, is_seen) in enumerate(blocks):
            if isinstance(claim, FileLines) and (is_seen or (certain[n] and certain[n + 1])):
                out += self._anywhere(open_claims, low, start) + self._raw(claim, start, end, ends=certain[n + 1])
                open_claims, low = [], end
            else:
                open_claims.append(claim)
        return out + self._anywhere(open_claims, low, high)

    def _lay_out(self, claims: list[Claim], low: int, high: int) -> list[_Block]:
        """Give each claim the lines that it printed. Return [] if no layout fits.

        They are as many lines as it can print if that adds up, otherwise as many as its file was last seen to have. One
        claim of unknown length gets the rest.
        """
        most = [_most_lines(claim) for claim in claims]
        adds_up = None not in most and sum(n or 0 for n in most) == high - low
        lengths = most if adds_up else [self._likely_lines(claim) for claim in claims]
        rest = high - low - sum(n or 0 for n in lengths)
        unknown = lengths.count(None)
        if rest < 0 or unknown > 1 or (rest and not unknown) or not all(map(_can_be_counted, claims)):
            return []
        out: list[_Block] = []
        for claim, likely, limit in zip(claims, lengths, most, strict=True):
            stop = low + (rest if likely is None else likely)
            out.append(_Block(claim, low, stop, limit == stop - low, self._is_borne_out(claim, low, stop)))
            low = stop
        return out

    def _likely_lines(self, claim: Claim) -> int | None:
        """Return the number of lines that a claim printed if its file is as it was last shown.

        If the length of the file is not known, return the most lines that the claim can print. Return None if there is
        no limit.
        """
        if not isinstance(claim, FileLines) or claim.lines is None or len(claim.keys) != 1:
            return _most_lines(claim)
        total = self.view.key(claim.keys[0]).total
        if total is None:
            return _most_lines(claim)
        start, end = claim.lines
        return max(0, min(end or total, total) - start + 1)

    def _is_borne_out(self, claim: Claim, low: int, high: int) -> bool:
        """Return True if all lines equal, byte for byte, the lines of this claim that were shown before."""
        if isinstance(claim, Literal):
            return list(self.lines[low:high]) == split_lines(claim.text)
        same = self._shown_before(claim, low, high)
        return len(same) == high - low and not all(map(is_blank, same))

    def _is_known(self, claim: FileLines) -> bool:
        """Return True if the lines that were shown before match the claim.

        At least `SAME_LINES` of them must be non-blank, and none may differ.
        """
        return sum(not is_blank(line) for line in self._shown_before(claim, 0, len(self.lines))) >= SAME_LINES

    def _shown_before(self, claim: Claim, low: int, high: int) -> list[str]:
        """Return the lines of this output that were shown before with the numbers that the claim gives them.

        Return [] if one of them differs.
        """
        if not isinstance(claim, FileLines) or claim.lines is None or len(claim.keys) != 1:
            return []
        start, out = claim.lines[0], list[str]()
        for first, last, visible in self.view.key(claim.keys[0]).numbered.overlaps(start, start + high - low - 1):
            there = visible.mapped.first
            ours = list(self.lines[low + first - start : low + last - start + 1])
            if ours != self.view.bodies(visible)[first - there : last - there + 1]:
                return []
            out += ours
        return out

    def _anywhere(self, claims: Sequence[Claim], low: int, high: int) -> list[MappedSpan]:
        """Return the mapped spans of all lines that may be content, for claims whose borders are unknown.

        Each span names all the files of the claims, at most `MOST_KEYS`, and no line numbers.
        """
        keys = tuple(dict.fromkeys(key for c in claims if isinstance(c, FileLines) for key in c.keys))
        if not keys or low >= high:
            return []
        said = [low + at for at in find_complaints(self.lines[low:high])] if not self.facts.exact else []
        out: list[MappedSpan] = []
        for stop in sorted({*said, *self.truncations, high}):
            if low < stop <= high:
                out.append(MappedSpan(keys[:MOST_KEYS], low, stop - low))
            low = max(low, stop + 1)
        return out


def _certain_borders(blocks: list[_Block]) -> list[bool]:
    """Return for each border, from the one before the first block to the one after the last, if it is certain."""
    # `sed -n 1,3p a; cat b; cat c` printed 9 lines. The lines marked = were shown before.
    #
    #       a     b       c
    #     | = = = | ? ? | = = = = |
    #     0       1     2         3
    #
    # From the top: 0 is certain. 1 is certain because a begins at 0 and cannot have more than these three lines.
    # 2 is certain because the lines of c begin there.
    # From the bottom: 3 is certain. Only literal text passes that on: a file may have more lines above than were shown.
    adds_up = all(block.is_full for block in blocks)
    certain = [True]
    for block in blocks:
        certain[-1] |= block.is_seen and isinstance(block.claim, FileLines)
        certain.append(certain[-1] and block.is_full and (block.is_seen or adds_up))
    certain[-1] = True
    for n in reversed(range(len(blocks))):
        certain[n] |= certain[n + 1] and blocks[n].is_seen and isinstance(blocks[n].claim, Literal)
    return certain


def _is_landmark(claim: Claim) -> bool:
    return isinstance(claim, Literal) and bool(claim.text.strip())


def _can_be_counted(claim: Claim) -> bool:
    """Return True if the claim is text, or a known range of raw lines of one file."""
    if isinstance(claim, FileLines):
        return claim.sep is None and claim.lines is not None and len(claim.keys) == 1 and not claim.if_long
    return isinstance(claim, Literal)


def _most_lines(claim: Claim) -> int | None:
    """Return the most lines that a claim can print, or None if no limit is known."""
    if isinstance(claim, Literal):
        return count_lines(claim.text)
    if not isinstance(claim, FileLines) or claim.lines is None:
        return None
    start, end = claim.lines
    return None if end is None else end - start + 1


def _complete_lines(source_map: Sequence[MappedSpan], truncations: Collection[int]) -> list[MappedSpan]:
    """Return the mapped spans without the lines in `truncations`."""
    if not truncations:
        return list(source_map)
    stops = sorted(truncations)
    out: list[MappedSpan] = []
    for mapped in source_map:
        low, end = mapped.at, mapped.at + mapped.count
        for stop in (*stops[bisect_left(stops, low) : bisect_left(stops, end)], end):
            if low < stop:
                out.append(replace(mapped, at=low, count=stop - low, first=mapped.first + low - mapped.at))
            low = stop + 1
    return out


def _first_numbered(source_map: list[MappedSpan]) -> list[MappedSpan]:
    """Return the first numbered spans that are adjacent, with no other line between them, and whose numbers rise."""
    for n, (a, b) in enumerate(itertools.pairwise(source_map), 1):
        if a.at + a.count != b.at or b.first < a.first + a.count:
            return source_map[:n]
    return source_map


def _without_last(source_map: list[MappedSpan]) -> list[MappedSpan]:
    """Return the mapped spans without their last line, which may end with other text."""
    *others, last = source_map
    return [*others, replace(last, count=last.count - 1)] if last.count > 1 else others
