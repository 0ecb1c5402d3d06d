"""Checks of a model's requests and of the figures that are reported of them.

Every line that a marker stands for is in the same request. Nothing is changed before the first change of the host, so
that the prompt cache holds as long as it does without readcache. `readcache gain` counts no marker and no saved
character that the model was not sent.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Any

from readcache.core.model.spec.lines import VisibleText, first_missing
from readcache.testing.hosts import Seen

_ENDS = r"repeat (?:this call )?to see|(?:ran now|it ran)[^\n\]]*"  # with the words of earlier builds
_MARKER = re.compile(rf"\[(?:FILE_UNCHANGED|UNCHANGED|LEFT_OUT|GONE) [0-9a-f]{{4,8}}\.\d+: [^\n]*?; (?:{_ENDS})\]")
NOTE = re.compile(r"\[PRUNED [0-9a-f]{4,8}(?:\.\d+)?: [^\n\]]*\]")  # the line that replaces a cleared result
# One file, and its lines, or only the lines that match a search. Earlier builds wrote "selected:".
_NAMED = re.compile(
    r"\[\S+ \S+ (\"[^\"]*\"|[^ ,]+) lines? (?:[\d, -]+ \((?:only|selected:) )?(\d[\d, -]*?)(?: match)?\)?, "
    r"(?:same as )?(?:above|in)\b"
)
_ROUNDING = 1  # characters of a result: a host may trim the newline at its end


def markers(text: str) -> list[str]:
    """Return the markers in a text, from any session."""
    return _MARKER.findall(text)


class Requests:
    """The requests of one conversation, in order. `normal`: removes from a text everything that differs from run to
    run. `lengths`: the number of lines in each file that markers may name."""

    def __init__(self, normal: Callable[[str], str] = str, lengths: Mapping[str, int] | None = None) -> None:
        self._normal, self._lengths = normal, lengths or {}
        self._omitted_lines: dict[str, list[str]] = {}  # marker -> the omitted lines
        self._before: tuple[Sequence[str], Sequence[str]] = ((), ())  # the last texts: with readcache, without

    def compare(self, ours: Seen, real: Seen | None) -> None:
        """Compare a request with the same request of a conversation without readcache. `real`: None if the true results
        are unknown. Raise AssertionError if the request is not sound."""
        texts = [*ours.texts, *ours.results]
        forms = [form for text in texts for form in (text, self._normal(text))]  # the latter lacks a host's additions
        shown = [VisibleText(_MARKER.sub("", form)) for form in forms]
        if real is not None:
            assert len(ours.results) == len(real.results), (
                f"{len(real.results)} results, and {len(ours.results)} with readcache"
            )
            for result, truth in zip(ours.results, real.results, strict=True):
                self._account(self._normal(result), self._normal(truth))
            inner = Requests(self._normal, self._lengths)  # nothing is visible to a new sub-agent
            assert len(ours.inner) == len(real.inner), "the sub-agent's model was asked more often, or less"
            for one, other in zip(ours.inner, real.inner, strict=True):
                inner.compare(one, other)
            self._check_cache(ours.texts, real.texts)
        for marker, lines in self._omitted_lines.items():
            if any(marker in text for text in texts):
                missing = first_missing(lines, shown, marker)
                assert missing is None, f"{marker} stands for a line that is not in view: {lines[missing]!r}"

    def _check_cache(self, ours: Sequence[str], real: Sequence[str]) -> None:
        """Check that no text changed before the host's first change since the last request.

        A text that was cleared now may change, because the user asked for that. If a request has more texts than the
        host alone would have sent, such as a restored section, check nothing: the texts cannot be paired.
        """
        before, self._before = self._before, (ours, real)
        if len(ours) == len(real) and len(before[0]) == len(before[1]):
            cached = _alike(before[1], real)
            kept = _alike(before[0], ours)
            is_cleared = kept < len(ours) and NOTE.search(ours[kept]) is not None
            assert kept >= cached or is_cleared, f"changed before anything that the host changed: {ours[kept]!r}"

    def _account(self, result: str, truth: str) -> None:
        """Check that the result has every line of the truth, or a marker that replaces it, and no other lines."""
        rest, parts = truth.removesuffix("\n").split("\n"), _split_at_markers(result.removesuffix("\n"))
        at = 0
        for number, (found, lines) in enumerate(parts):
            start = _find(lines, rest, at, is_last=number == len(parts) - 1) if found else 0
            if start is None or rest[start : start + len(lines)] != lines:
                found_instead = _first_difference(lines, rest[at:])
                raise AssertionError(f"not what the host shows without readcache: {found_instead}")
            for marker, stood_for in _shares(found, rest[at:start]):
                self._omitted_lines[marker] = stood_for
                self._check_numbers(marker, len(stood_for), is_alone=len(found) == 1)
            at = start + len(lines)
        assert at == len(rest), f"lines are missing, and no marker stands for them: {rest[at:][:3]}"

    def _check_numbers(self, marker: str, count: int, *, is_alone: bool) -> None:
        """Check that a marker names as many lines as it replaces, if it is alone, and no lines that its file lacks."""
        if found := _NAMED.match(marker):
            assert not is_alone or _count(marker) == count, f"{marker} stands for {count} lines"
            last = int(re.findall(r"\d+", found[2])[-1])
            assert last <= self._lengths.get(found[1], last), f"{marker} names lines of a file with fewer"


def _count(marker: str) -> int | None:
    """Return how many lines of one file the marker names; None if it names none."""
    found = _NAMED.match(marker)
    spans = [span.partition("-") for span in found[2].split(", ")] if found else []
    return sum(int(last or first) - int(first) + 1 for first, _, last in spans) or None


def _shares(found: Sequence[str], lines: list[str]) -> list[tuple[str, list[str]]]:
    """Return (marker, the lines that it replaces). If several markers are in a row, each has as many lines as it names.
    If these numbers do not add up, each may replace any of the lines."""
    counts = [_count(marker) or 0 for marker in found]
    if not all(counts) or sum(counts) != len(lines):
        return [(marker, lines) for marker in found]
    ends = [*accumulate(counts)]
    return [(m, lines[end - count : end]) for m, count, end in zip(found, counts, ends, strict=True)]


def _alike(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many texts are equal, from the first on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


def _split_at_markers(result: str) -> list[tuple[list[str], list[str]]]:
    """Return (the markers, the lines that follow them), starting with the lines before the first marker."""
    out: list[tuple[list[str], list[str]]] = [([], [])]
    for line in result.split("\n"):
        if found := markers(line):
            if out[-1][1] or not out[-1][0]:
                out.append(([], []))
            out[-1][0].extend(found)
        else:
            out[-1][1].append(line)
    return out


def _find(lines: Sequence[str], rest: Sequence[str], low: int, *, is_last: bool) -> int | None:
    """Return the index in `rest` at which the lines occur next; None if they do not. The last lines belong at the
    end."""
    if is_last:
        return len(rest) - len(lines)
    starts = range(low, len(rest) - len(lines) + 1)
    return next((at for at in starts if rest[at : at + len(lines)] == lines), None)


def _first_difference(lines: Sequence[str], rest: Sequence[str]) -> str:
    pairs = [*zip(lines, rest, strict=False)]
    return next(
        (f"{ours!r} instead of {real!r}" for ours, real in pairs if ours != real), f"{len(lines)} lines: {lines[:3]}"
    )


def check_figures(store: Path, ours: Sequence[Seen], real: Sequence[Seen]) -> None:
    """Compare the figures of a store with the requests of its conversation. Raise AssertionError if they differ.

    Only results of the last step may be missing in the figures: nothing that came later says what became of them.
    """
    done = subprocess.run(
        [sys.executable, "-m", "readcache", "gain", "--json", "--store", str(store)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    counted = said["windows"]["all"]
    steps = [list(zip(one.results, other.results, strict=True)) for one, other in zip(ours, real, strict=True)]
    shortened = [[(shown, full) for shown, full in step if markers(shown)] for step in steps]
    sent, least = sum(map(len, shortened)), sum(map(len, shortened[:-1]))
    assert least <= counted["results_cut"] <= sent, f"{counted['results_cut']} results cut, and {sent} were sent"
    assert said["checked"]["markers"] <= sum(len(markers(shown)) for step in shortened for shown, _ in step)
    saved = sum(len(full) - len(shown) for step in shortened for shown, full in step)
    most = saved + _ROUNDING * sent
    assert 0 < counted["chars_saved"] <= most, f"{counted['chars_saved']} characters, and {saved} were saved"
