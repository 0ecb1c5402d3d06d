"""The rewrites of a message list: collects replacements for markers, and puts them into whole texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from readcache.core.judging.marker import find_span
from readcache.core.messages.editing import TextKey
from readcache.core.messages.messages import Kind
from readcache.core.model.events import Delivered
from readcache.core.sync.locate import CharSpan, remaining_span
from readcache.core.sync.returned import Made
from readcache.core.sync.search import Location
from readcache.core.sync.texts import MessageText, MessageTexts

Edit = tuple[Location, Delivered, str]  # where a reply is; the reply, settled; the new one: only its markers differ
MarkerEdit = tuple[MessageText, CharSpan, str, Iterable[Made]]  # where a marker is; the new text; the replies with it


class Rewrites:
    """The changes to the texts of one list."""

    def __init__(self, texts: MessageTexts, edits: Iterable[Edit], orphans: Iterable[MarkerEdit] = ()) -> None:
        self._texts = texts
        self._changes: defaultdict[MessageText, dict[CharSpan, str]] = defaultdict(dict)
        self._replies: defaultdict[MessageText, dict[str, CharSpan]] = defaultdict(dict)  # call id -> where it stands
        for location, event, reply in edits:
            changes = dict(_marker_changes(location, event, reply)) if location.text is not None else {}
            if changes and location.text is not None:
                self._changes[location.text].update(changes)
                self._replies[location.text][event.call_id] = location.char_span
        for text, char_span, new, made in orphans:
            if char_span not in self._changes[text]:
                self._changes[text][char_span] = new
                for each in made if text.call_id is None else ():
                    self._replies[text].setdefault(each.event.call_id, remaining_span(each.event, text.free, ""))

    def texts(self) -> tuple[dict[str, str], dict[TextKey, str]]:
        """The new whole texts, by call and by place. What would cost a line that stands there is given up."""
        by_call: dict[str, str] = {}
        by_text_key: dict[TextKey, str] = {}
        for text, changes in self._changes.items():
            new = text.rewritten(changes)
            if new is None:
                continue
            call_id = text.call_id
            by_text_key[self._texts.order()[text][0], call_id, text.raw] = new
            if call_id is None:
                for made_by, char_span in self._replies[text].items():
                    by_call.setdefault(made_by, _reply_alone(text.content, char_span, changes))
            elif all(_has_lines(new, other) for other in self._raws_of(call_id) - {text.raw}):
                by_call[call_id] = new
        return by_call, by_text_key

    def _raws_of(self, call_id: str) -> set[str]:
        """The results that an id names."""
        return {text.raw for text in self._texts.named(Kind.RESULT, call_id)}


def _reply_alone(content: str, char_span: CharSpan, changes: Mapping[CharSpan, str]) -> str:
    """A reply as it stands in a text, with the changes in it."""
    low, high = char_span
    out = content[low:high]
    for (start, end), new in sorted(changes.items(), reverse=True):
        if low <= start and end <= high:
            out = out[: start - low] + new + out[end - low :]
    return out + "\n"


def _marker_changes(location: Location, event: Delivered, reply: str) -> Iterator[tuple[CharSpan, str]]:
    """(where, what) of the markers in a reply that must replace those in the list."""
    assert location.text is not None
    at, end = location.char_span
    shown = location.text.content[at:end].split("\n")
    lines = reply.split("\n")
    marked = {marker.line: marker for marker in event.markers if marker.line >= 0}
    for k, line in enumerate(shown):
        if k in marked:
            was = event.text.split("\n")[k]
            low, high = find_span(was, marked[k].wording) or (0, len(was))
            front, back = was[:low], was[high:]
            is_around = line.startswith(front) and line.endswith(back) and len(line) >= len(front) + len(back)
            if is_around and line != lines[k]:
                yield (at + low, at + len(line) - len(back)), lines[k][low : len(lines[k]) - len(back)]
        at += len(line) + 1


def _has_lines(text: str, other: str) -> bool:
    """True if every line of `other` stands in `text`, in order."""
    lines = iter(text.split("\n"))
    return all(line in lines for line in other.split("\n"))
