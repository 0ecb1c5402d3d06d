"""Rewrite the texts of a message list: collect replacements for markers, and put them into whole texts."""

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

Edit = tuple[Location, Delivered, str]  # a reply's location, the amended reply, its new text with other markers
MarkerEdit = tuple[MessageText, CharSpan, str, Iterable[Made]]  # a marker's text and span, the new text, its replies


def plan_edits(
    texts: MessageTexts, edits: Iterable[Edit], orphans: Iterable[MarkerEdit] = ()
) -> tuple[dict[str, str], dict[TextKey, str]]:
    """Return the new whole texts, by call ID and by text key. Give up an edit that would change any other line."""
    changes: defaultdict[MessageText, dict[CharSpan, str]] = defaultdict(dict)
    replies: defaultdict[MessageText, dict[str, CharSpan]] = defaultdict(dict)  # call ID -> the reply's span
    for location, event, reply in edits:
        if location.text is not None and (
            found := dict(_marker_changes(location.text, location.char_span, event, reply))
        ):
            changes[location.text].update(found)
            replies[location.text][event.call_id] = location.char_span
    for text, char_span, new, made in orphans:
        if char_span not in changes[text]:
            changes[text][char_span] = new
            for each in made if text.call_id is None else ():
                replies[text].setdefault(each.event.call_id, remaining_span(each.event, text.free, ""))
    by_call: dict[str, str] = {}
    by_text_key: dict[TextKey, str] = {}
    for text, found in changes.items():
        whole = text.rewritten(found)
        if whole is None:
            continue
        call_id = text.call_id
        by_text_key[texts.order()[text][0], call_id, text.raw] = whole
        if call_id is None:
            for made_by, char_span in replies[text].items():
                by_call.setdefault(made_by, _reply_alone(text.content, char_span, found))
            continue
        others = {other.raw for other in texts.named(Kind.RESULT, call_id)} - {text.raw}
        if all(_has_lines(whole, other) for other in others):
            by_call[call_id] = whole
    return by_call, by_text_key


def _reply_alone(content: str, char_span: CharSpan, changes: Mapping[CharSpan, str]) -> str:
    """Return the part of a text that is the reply, with the changes in it."""
    low, high = char_span
    out = content[low:high]
    for (start, end), new in sorted(changes.items(), reverse=True):
        if low <= start and end <= high:
            out = out[: start - low] + new + out[end - low :]
    return out + "\n"


def _marker_changes(
    text: MessageText, char_span: CharSpan, event: Delivered, reply: str
) -> Iterator[tuple[CharSpan, str]]:
    """Yield (character span, new text) for each marker of a reply that must change in the list."""
    at, end = char_span
    shown = text.content[at:end].split("\n")
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
    """Return True if `text` contains every line of `other`, in order."""
    lines = iter(text.split("\n"))
    return all(line in lines for line in other.split("\n"))
