"""Coverage: which lines of an output already stand before the reader, byte for byte, and where.

Bytes decide here. Parsing never decides alone. A line is covered only if the visible line named as its source equals
it: the whole body and, if the output shows numbers, a number at the source too.

Here lines of files are compared at the numbers that they have, which tells whether a file changed; `search` looks for
any line anywhere, by what it says.

A `Match` is a stretch of output lines that stands in one piece at one source.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from readcache.core.model.events import MappedSpan
from readcache.core.model.key_view import Delivery, KeyView, VisibleSpan
from readcache.core.model.text import bodies, is_doubtful, shows_numbers
from readcache.core.model.view import View

# How many of a key's newest deliveries to search, so that a call's cost does not grow with the session.
MOST_VISIBLE_SPANS = 48


@dataclass(frozen=True, slots=True)
class Match:
    """Output lines low to high - 1 (0-based) stand at `visible`, from line `at` (0-based) of its piece on."""

    low: int
    high: int
    visible: VisibleSpan
    at: int
    mapped: MappedSpan


@dataclass(slots=True)
class Coverage:
    """What was found for an output, and why more was not."""

    changed: set[str] = field(default_factory=set)  # keys whose visible lines disagree with this output
    written: set[str] = field(default_factory=set)  # keys with visible lines from before the agent's own write
    outdated: set[str] = field(default_factory=set)  # the same, from before a change seen earlier
    unnumbered: bool = False  # lines are visible, but without the numbers that this output shows


Allow = Callable[[Delivery], bool]


def cover(view: View, lines: Sequence[str], source_map: Iterable[MappedSpan], allow: Allow) -> Coverage:
    """What the visible lines of the files of all pieces say. `allow(delivery)`: may a marker point at it?"""
    found = Coverage()
    for mapped in source_map:
        texts = bodies(lines[mapped.at : mapped.at + mapped.count], mapped.sep)
        for key in mapped.keys:
            known = view.key(key)
            _note_staleness(known, key, allow, found)
            if mapped.first and differs(view, known, mapped, texts, allow):
                found.changed.add(key)
            elif mapped.first:
                found.unnumbered |= _lacks_numbers(known, mapped, allow)
    return found


def _note_staleness(known: KeyView, key: str, allow: Allow, found: Coverage) -> None:
    newest = itertools.islice(reversed(known.stale), MOST_VISIBLE_SPANS)
    if known.invalid is not None and any(allow(visible.delivery) for visible in newest):
        (found.written if known.invalid.written else found.outdated).add(key)


def _lacks_numbers(known: KeyView, mapped: MappedSpan, allow: Allow) -> bool:
    overlaps = known.numbered.overlaps(mapped.first, mapped.first + mapped.count - 1)
    return any(allow(visible.delivery) and not can_replace(visible, mapped) for _, _, visible in overlaps)


def can_replace(visible: VisibleSpan, mapped: MappedSpan) -> bool:
    """Numbered lines stand for raw ones; raw ones for numbered ones if the numbers of both are known, so that the
    marker can name them. See also `numbers.Proof`."""
    if mapped.sep is None or shows_numbers(visible.mapped.sep):
        return True
    return len(mapped.keys) == 1 and mapped.first > 0 < visible.mapped.first and not mapped.shift


def differs(view: View, known: KeyView, mapped: MappedSpan, texts: list[str], allow: Allow) -> bool:
    """True if a visible line of the key, as far as is known, differs from these; the very last one apart, where one
    side was cut off (`head -c`, a harness's limit)."""
    last = mapped.first + mapped.count - 1
    for start, end, visible in known.numbered.overlaps(mapped.first, last):
        there = visible.mapped
        ours = texts[start - mapped.first : end - mapped.first + 1]
        theirs = view.bodies(visible)[start - there.first : end - there.first + 1]
        if ours == theirs or not allow(visible.delivery):
            continue
        if (is_doubtful(mapped.sep) or is_doubtful(there.sep)) and _are_one_blank_apart(ours, theirs):
            continue  # rather than the file, the separator differs from what was thought
        is_truncated = ours[-1].startswith(theirs[-1]) or theirs[-1].startswith(ours[-1])
        if ours[:-1] != theirs[:-1] or not is_truncated or end not in (last, there.first + there.count - 1):
            return True
    return False


def _are_one_blank_apart(some: list[str], others: list[str]) -> bool:
    """True if all lines of one have a blank more in front than those of the other."""
    return [f" {line}" for line in some] == others or [f" {line}" for line in others] == some


def is_outdated(view: View, matches: Sequence[Match], changed: Collection[str]) -> bool:
    """Return True if a file is known to have changed, or may have been written, since a source of these runs showed its
    lines. `changed`: keys whose visible lines disagree with this output. A source without keys has lines of this
    output's files."""
    if any(key in changed for match in matches for key in match.mapped.keys):
        return True
    shown = {
        (key, match.visible.delivery) for match in matches for key in match.visible.mapped.keys or match.mapped.keys
    }
    return any(view.was_written_since(key, delivery) for key, delivery in shown)
