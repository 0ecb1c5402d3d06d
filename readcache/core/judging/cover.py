"""Coverage: compare the lines of an output, byte for byte, with the lines of the same files that are visible.

Bytes decide here. Parsing never decides alone. A line is covered only if the visible line named as its source equals
it. The whole body must be equal and, if the output shows numbers, the source must have a number too.

This module compares lines of files at their own numbers, which shows if a file changed. Only two texts in the same
rendering (`Call.rendering`) show it. `search` looks for any line anywhere, by its text.

A `Match` is a run of output lines that are consecutive at one source.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from readcache.core.model.events import MappedSpan
from readcache.core.model.key_view import Delivery, KeyView, VisibleSpan
from readcache.core.model.spans import SpanMap
from readcache.core.model.text import SAME_LINES, bodies, is_blank, is_doubtful, shows_numbers
from readcache.core.model.view import View

# A limit for the newest deliveries of a key that are searched. A call's cost must not grow with the session.
MOST_VISIBLE_SPANS = 48


@dataclass(frozen=True, slots=True)
class Match:
    """Output lines low to high - 1 (0-based) that are in `visible`, from its line `at` (0-based) on.

    `mapped`: the mapped span of the output that contains these lines.
    """

    low: int
    high: int
    visible: VisibleSpan
    at: int
    mapped: MappedSpan


@dataclass(slots=True)
class Coverage:
    """The findings for the files of an output, and the reasons why no more of it is covered."""

    changed: set[str] = field(default_factory=set)  # keys whose visible lines disagree with this output
    other_views: set[str] = field(default_factory=set)  # keys whose lines differ, but only in other renderings
    written: set[str] = field(default_factory=set)  # keys with visible lines from before the agent's own write
    outdated: set[str] = field(default_factory=set)  # keys with visible lines from before an earlier change
    unnumbered: bool = False  # lines are visible, but without the numbers that this output shows


Allow = Callable[[Delivery], bool]


def cover(
    view: View, lines: Sequence[str], source_map: Iterable[MappedSpan], allow: Allow, rendering: str = ""
) -> Coverage:
    """Return how the output compares with the visible lines of the files in its source map.

    `rendering`: see `Call.rendering`. `allow(delivery)`: True if a marker may name the delivery as its source.
    """
    found = Coverage()
    for mapped in source_map:
        texts = bodies(lines[mapped.at : mapped.at + mapped.count], mapped.sep)
        for key in mapped.keys:
            known = view.key(key)
            _note_staleness(known, key, allow, found)
            if not mapped.first:
                continue
            differing = list(find_differing(view, known.numbered, mapped, texts, allow))
            if not differing:
                found.unnumbered |= _lacks_numbers(known, mapped, allow)
            elif any(visible.delivery.is_rendered_as(rendering) for visible in differing) or any(
                find_differing(view, known.numbered_in(rendering), mapped, texts, allow)
            ):
                found.changed.add(key)
            else:
                found.other_views.add(key)
    return found


def _note_staleness(known: KeyView, key: str, allow: Allow, found: Coverage) -> None:
    newest = itertools.islice(reversed(known.stale), MOST_VISIBLE_SPANS)
    if known.invalid is not None and any(allow(visible.delivery) for visible in newest):
        (found.written if known.invalid.written else found.outdated).add(key)


def _lacks_numbers(known: KeyView, mapped: MappedSpan, allow: Allow) -> bool:
    overlaps = known.numbered.overlaps(mapped.first, mapped.first + mapped.count - 1)
    return any(allow(visible.delivery) and not can_replace(visible, mapped) for _, _, visible in overlaps)


def can_replace(visible: VisibleSpan, mapped: MappedSpan) -> bool:
    """Return True if a marker can name lines of `visible` as the source of lines of `mapped`.

    Numbered lines can replace raw lines. Raw lines can replace numbered lines if the numbers of both are known, because
    the marker can then name them. The numbers of a file that may be in `visible` become known with the match (see
    `decided`). See also `numbers.Proof`.
    """
    if mapped.sep is None or shows_numbers(visible.mapped.sep):
        return True
    if len(mapped.keys) != 1 or not mapped.first or mapped.shift:
        return False
    return visible.mapped.first > 0 or mapped.keys[0] in visible.mapped.keys


def decided(match: Match, texts: Sequence[str]) -> Match:
    """Return the match with the file and the line numbers of its source, if the match proves them.

    A source may have lines of several files, with unknown borders, or unknown lines of one file. If they equal known
    lines of one of these files, they are these lines. `texts`: the matched lines.
    """
    ours, theirs = match.mapped, match.visible.mapped
    if theirs.first or not ours.first or len(ours.keys) != 1 or ours.keys[0] not in theirs.keys:
        return match
    if sum(not is_blank(text) for text in texts) < SAME_LINES:
        return match
    first, is_end = ours.first + match.low - ours.at, ours.eof and match.high == ours.at + ours.count
    known = replace(theirs, keys=ours.keys, at=theirs.at + match.at, count=len(texts), first=first, eof=is_end)
    return replace(match, visible=VisibleSpan(match.visible.delivery, known), at=0)


def find_differing(
    view: View, numbered: SpanMap[VisibleSpan], mapped: MappedSpan, texts: list[str], allow: Allow
) -> Iterator[VisibleSpan]:
    """Yield each of these visible spans that has, for a known number, another line than this output.

    The last line does not count if one side was truncated there (`head -c`, a harness's limit): one line then begins
    with the other.
    """
    last = mapped.first + mapped.count - 1
    for start, end, visible in numbered.overlaps(mapped.first, last):
        there = visible.mapped
        ours = texts[start - mapped.first : end - mapped.first + 1]
        theirs = view.bodies(visible)[start - there.first : end - there.first + 1]
        if ours == theirs or not allow(visible.delivery):
            continue
        if (is_doubtful(mapped.sep) or is_doubtful(there.sep)) and _are_one_blank_apart(ours, theirs):
            continue  # the separator differs from the assumed one; the file may be the same
        is_truncated = ours[-1].startswith(theirs[-1]) or theirs[-1].startswith(ours[-1])
        if ours[:-1] != theirs[:-1] or not is_truncated or end not in (last, there.first + there.count - 1):
            yield visible


def _are_one_blank_apart(some: list[str], others: list[str]) -> bool:
    """Return True if all lines of one list have one more blank at their beginning than the lines of the other."""
    return [f" {line}" for line in some] == others or [f" {line}" for line in others] == some


def is_outdated(view: View, matches: Sequence[Match], changed: Collection[str]) -> bool:
    """Return True if a file has changed, or may have been written, since a source of these matches showed its lines.

    `changed`: keys whose visible lines disagree with this output. A source without keys counts as lines of this
    output's files.
    """
    if any(key in changed for match in matches for key in match.mapped.keys):
        return True
    shown = {
        (key, match.visible.delivery) for match in matches for key in match.visible.mapped.keys or match.mapped.keys
    }
    return any(view.was_written_since(key, delivery) for key, delivery in shown)
