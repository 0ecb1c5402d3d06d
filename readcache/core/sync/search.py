"""Find the deliveries that no ID in a message list names, by their lines and in the order of their delivery.

A delivery, or the rest that a harness left of it, is in some text, with any words of the harness around it. The order
distinguishes equal deliveries: a text between two others was delivered between them. If the order is not enough, the
newest deliveries are taken to be left, because histories are removed from the front.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from readcache.core.judging.marker import find_possible
from readcache.core.model.events import Delivered, Origin
from readcache.core.model.key_view import Delivery
from readcache.core.model.text import is_blank, split_lines
from readcache.core.sync.locate import CharSpan, chars_left, extract_rest, locate, locate_stale, longest_run
from readcache.core.sync.texts import MessageText, MessageTexts

# Characters in consecutive lines that identify a truncated text in a list without IDs. Every harness that was examined
# leaves a thousand or more. Two of the shortest markers have 120.
SHORTEST_LEFT = 120
# Deliveries that may share the line that is searched for. If more share it, another line is chosen.
MOST_SHARING = 8
FEW = 8  # lines at the beginning of a delivery; the line to search for is one of them
MOST_VOTED = 4  # deliveries that are compared with the rest in one text


@dataclass(frozen=True, slots=True)
class Location:
    """The text and the span of a delivery, or of its rest. `text` is None for a delivery without text."""

    text: MessageText | None = None
    char_span: CharSpan = (0, 0)
    is_stale: bool = False  # the list still has markers that were replaced


_Found = tuple[MessageText, CharSpan]


@dataclass(slots=True, eq=False)
class _Group:
    """Deliveries with the same text, oldest first, and the locations in which it was found."""

    deliveries: list[Delivery]
    found: list[_Found] = field(default_factory=list)

    @property
    def event(self) -> Delivered:
        """The event of the newest delivery; all have the same text."""
        return self.deliveries[-1].event


_Anchor = tuple[tuple[tuple[int, int], CharSpan], int]  # a position in the list, a position in the order of the calls


class Search:
    """One search for the deliveries `missing`, in the texts for which `is_open` returns True. `ranks`: the position of
    each visible delivery in the order of the calls. `located`: the deliveries that are at their known locations."""

    def __init__(
        self,
        texts: MessageTexts,
        missing: Sequence[Delivery],
        is_open: Callable[[MessageText, Delivered], bool],
        ranks: Callable[[], Mapping[Delivery, int]],
        located: Mapping[Delivery, Location],
        tag: str,
    ) -> None:
        self._texts = texts
        self._is_open = is_open
        self._ranks = ranks
        self._locations = dict[Delivery, Location]()
        self._located = located
        self._tag = tag
        self._known, self._row = 0, list[_Anchor]()  # how many locations were known when `_anchors` made the row
        groups: dict[tuple[Origin, str], _Group] = {}
        for delivery in missing:
            event = delivery.event
            groups.setdefault((event.origin, event.text), _Group([])).deliveries.append(delivery)
        self._groups = list(groups.values())
        self._voters = _by_all_lines(self._groups)

    def find_complete(self) -> dict[Delivery, Location]:
        """Return the locations of complete deliveries. In a text the longest are found first, because they may contain
        shorter ones."""
        self._locations = {}
        wanted = _by_line(self._groups)
        waiting = set(self._groups)
        for text in self._texts.newest_first():
            if not waiting:
                break
            lines = text.free.split("\n")
            for group in self._possible_in(text, lines, wanted):
                while len(group.found) < len(group.deliveries):
                    char_span = locate(group.event, text.free)
                    if char_span is None or self._is_within_another(group, text.free, char_span):
                        break
                    found = text, char_span
                    text.claim(found, char_span)
                    group.found.append(found)
                if len(group.found) == len(group.deliveries):
                    waiting.discard(group)
        for is_short in (False, True):  # groups found for all deliveries come first: their order bounds the others
            for group in self._groups:
                if (len(group.found) < len(group.deliveries)) is is_short and group.found:
                    self._assign(group)
        return self._locations

    def _is_within_another(self, group: _Group, content: str, char_span: CharSpan) -> bool:
        """Return True if the span with the line before or after it is a part of a longer delivery. The text is then the
        rest of that one, which was truncated."""
        start, end = char_span
        before = content[content.rfind("\n", 0, max(0, start - 1)) + 1 : start]
        behind = content[end : (content.find("\n", end + 1) + 1 or len(content) + 1) - 1]
        lines = split_lines(group.event.text)
        first = next((line for line in lines if not is_blank(line)), None)
        longer = [other for other in self._voters.get(first or "", ()) if len(other.event.text) > len(group.event.text)]
        around = [before + content[start:end]] * (start > 0) + [content[start:end] + behind] * (end < len(content))
        return any(part in other.event.text for other in longer for part in around)

    def find_parts(self) -> Iterator[tuple[Delivery, Location]]:
        """Yield the deliveries with a part left in a text, and deliveries with markers that were replaced since. The
        caller claims each one before it requests the next."""
        groups = [group for group in self._groups if group.deliveries]
        voters = _by_all_lines(groups)
        for text in self._texts.newest_first() if voters else ():
            while (found := self._part_in(text, voters)) is not None:
                group, location = found
                (delivery,) = self._in_order(group, [(text, location.char_span)])
                group.deliveries.remove(delivery)
                self._locations[delivery] = location
                yield delivery, location

    def _part_in(self, text: MessageText, voters: Mapping[str, list[_Group]]) -> tuple[_Group, Location] | None:
        """Return the delivery with the largest rest in a text, and its location. Return None if there is none."""
        votes: Counter[_Group] = Counter()
        for line in _lines_and_markers(text.free, self._tag):
            for group in voters.get(line, ()):
                if group.deliveries and self._is_open(text, group.event):
                    votes[group] += len(line) + 1
        best: tuple[int, _Group, Location] | None = None
        for group, _ in votes.most_common(MOST_VOTED):
            char_span = locate_stale(group.event, text.free, self._tag)
            if char_span is not None:
                return group, Location(text, char_span, is_stale=True)
            chars = chars_left(group.event, text.free, self._tag)
            if (best is None or chars > best[0]) and _is_left(group.event, text.free, self._tag):
                best = chars, group, Location(text)
        return None if best is None else best[1:]

    def _possible_in(self, text: MessageText, lines: Iterable[str], wanted: Mapping[str, list[_Group]]) -> list[_Group]:
        """Return the groups whose text may be in this one, the longest first."""
        found = dict.fromkeys(group for line in lines for group in wanted.get(line, ()))
        fit = [group for group in found if self._is_open(text, group.event)]
        return sorted(fit, key=lambda group: -len(group.event.text))

    def _assign(self, group: _Group) -> None:
        """Assign the found locations to the equal deliveries of a group."""
        found = group.found
        if len(found) > 1:
            order = self._texts.order()
            found.sort(key=lambda each: (order[each[0]], each[1]))
        rests = self._rests_of(group) if len(found) < len(group.deliveries) else []
        for delivery, each in zip(self._in_order(group, found, rests), found, strict=True):
            each[0].release(each)
            self._locations[delivery] = Location(*each)
            group.deliveries.remove(delivery)
        group.found = []

    def _rests_of(self, group: _Group) -> list[MessageText]:
        """Return the texts after the first location of the group that have only a rest of its text."""
        order = self._texts.order()
        later = (text for text in self._texts.newest_first() if order[text] > order[group.found[0][0]])
        parts = ((text, self._part_in(text, self._voters)) for text in later)
        return [text for text, part in parts if part is not None and part[0] is group]

    def _in_order(self, group: _Group, found: Sequence[_Found], rests: Sequence[MessageText] = ()) -> list[Delivery]:
        """Return the deliveries of the group for these locations: the newest that fit between the texts around them.
        `rests`: texts with truncated deliveries of the group, which are newer than a location before them."""
        free = list(group.deliveries)
        if len(free) == len(found):
            return free
        ranks, order = self._ranks(), self._texts.order()
        known = len(self._located) + len(self._locations)
        if known > self._known * 5 // 4:  # not for each group, which would take quadratic time
            self._known, self._row = known, self._anchors()
        anchors, chosen = self._row, list[Delivery]()
        for text, char_span in reversed(found):
            position = order[text], char_span
            at = bisect_left(anchors, (position, -1))
            low = anchors[at - 1][1] if at else -1
            high = anchors[at][1] if at < len(anchors) else len(ranks)
            fitting = [delivery for delivery in free if low < ranks[delivery] < high]
            possible, newer = fitting or free, sum(order[rest] > order[text] for rest in rests)
            chosen.append(possible[max(0, len(possible) - 1 - newer)])
            free.remove(chosen[-1])
            if fitting:
                anchors.insert(at, (position, ranks[chosen[-1]]))
        return sorted(chosen, key=lambda delivery: ranks[delivery])

    def _anchors(self) -> list[_Anchor]:
        """Return (position, rank) of found deliveries, ascending in both, and as many as possible. Most lists are in
        order."""
        ranks, order = self._ranks(), self._texts.order()
        known = [
            ((order[location.text], location.char_span), ranks[delivery])
            for locations in (self._located, self._locations)
            for delivery, location in locations.items()
            if location.text is not None and location.text in order and delivery in ranks
        ]
        return _longest_increasing(sorted(known))


def _longest_increasing(anchors: Sequence[_Anchor]) -> list[_Anchor]:
    """Return the longest increasing subsequence by rank, found by patience sorting in n log n steps."""
    ranks: list[int] = []  # the lowest rank that ends a subsequence of each length
    ends: list[int] = []  # the index of that anchor
    before: list[int] = []  # for each anchor, the index of the one before it in its subsequence
    for at, (_, rank) in enumerate(anchors):
        length = bisect_left(ranks, rank)
        before.append(ends[length - 1] if length else -1)
        ranks[length : length + 1] = [rank]
        ends[length : length + 1] = [at]
    out: list[_Anchor] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        out.append(anchors[at])
        at = before[at]
    return out[::-1]


def _lines_and_markers(content: str, tag: str) -> Iterator[str]:
    for line in content.split("\n"):
        yield line
        for start, end in find_possible(line, tag):
            if (start, end) != (0, len(line)):
                yield line[start:end]


def _by_line(groups: Iterable[_Group]) -> dict[str, list[_Group]]:
    """Return the groups by a line that any text with the delivery must contain: the first line that is not blank. If
    too many groups share that line, it is the line of the delivery that the fewest of them have."""
    first: defaultdict[str, list[_Group]] = defaultdict(list)
    for group in groups:
        lines = group.event.text.split("\n", FEW)[:FEW]
        first[next((line for line in lines if line.strip()), lines[0])].append(group)
    crowded = [line for line, sharing in first.items() if len(sharing) > MOST_SHARING]
    for line in crowded:
        sharing = first.pop(line)
        counts = Counter(other for group in sharing for other in set(split_lines(group.event.text)))
        for group in sharing:
            rarest = min(split_lines(group.event.text), key=lambda other: (counts[other], -len(other)))
            first[rarest].append(group)
    return first


def _by_all_lines(groups: Sequence[_Group]) -> dict[str, list[_Group]]:
    """Return the newest few groups with a line, for every line that is not blank and every marker."""
    out: dict[str, list[_Group]] = {}
    for group in reversed(groups):
        event = group.event
        own = {line for line in split_lines(event.text) if not is_blank(line)}
        for line in own.union(marker.wording for marker in event.markers if marker.line >= 0):
            known = out.setdefault(line, [])
            if len(known) < 2 * MOST_SHARING:
                known.append(group)
    return out


def _is_left(event: Delivered, content: str, tag: str) -> bool:
    """Return True if enough of a delivery is left to identify it: one marker, or SHORTEST_LEFT characters. A restored
    section must also have its heading."""
    has_marker = any(marker.line >= 0 and marker.wording in content for marker in event.markers)
    if not has_marker and longest_run(event, content) < SHORTEST_LEFT:
        return False
    heading = split_lines(event.text)[0]
    return event.origin is not Origin.RESTORED or extract_rest(event, content, tag)[0].text.startswith(heading + "\n")
