"""Repair the markers whose source has left the conversation: name the lines' new source, or retire the marker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from readcache.core.judging import marker
from readcache.core.model.events import Amended, Delivered, MarkerRecord, Origin, SourceSpan
from readcache.core.model.text import digest_lines, split_lines
from readcache.core.model.view import View

# Characters that a search for lines in a truncated text may compare. If it would compare more, the lines count as gone.
MOST_SEARCHED = 20_000_000


class Remaining:
    """The texts of the view that the reader will still see. `stays(call_id)`: returns True if anything of the call may
    remain. `changed`: the texts that lost lines, by call ID and origin; None for a text that is gone."""

    def __init__(
        self,
        view: View,
        stays: Callable[[str], bool],
        changed: Mapping[tuple[str, Origin], str | None] | None = None,
    ) -> None:
        self._view = view
        self._stays = stays
        self.changed = dict(changed or {})
        self._changed_calls = {call_id for call_id, _ in self.changed}

    def lose(self, call_id: str, origin: Origin) -> None:
        """Record that this text is gone, too."""
        self.changed[call_id, origin] = None
        self._changed_calls.add(call_id)

    def confirms(self, record: MarkerRecord, call: int) -> bool:
        """Return True if all the lines that a marker of call number `call` replaces are still at its source."""
        for source in record.sources:  # a plain loop for speed: every sync runs it for every marker
            if not self._has_stayed(source, call) and not self._confirms_at(source, record, call):
                return False
        return True

    def _has_stayed(self, source: str, call: int) -> bool:
        if source in self._changed_calls or not self._stays(source):
            return False
        return self._view.lost_at.get(source, 0) < call

    def _confirms_at(self, source: str, record: MarkerRecord, call: int) -> bool:
        source_spans = [span for span in record.source_spans if span.call_id == source]
        names_output_lines = marker.OF_OUTPUT in record.wording
        return (
            bool(source_spans)
            and self._stays(source)
            and all(self._has_lines(each, call, names_output_lines) for each in source_spans)
        )

    def _has_lines(self, span: SourceSpan, call: int, names_output_lines: bool) -> bool:
        name = span.call_id, span.origin
        is_complete = span.call_id not in self._view.lost_at
        find = _lines_at_index if names_output_lines else partial(lines_at, is_complete=is_complete)
        known = [d for d in self._view.of_call(span.call_id) if d.event.origin is span.origin]
        # A later call with the same ID is below the marker. A restored section is always above it.
        texts = [d.event.text for d in known if d.call <= call or span.origin is Origin.RESTORED]
        meant = [lines for text in texts if (lines := find(span, text)) is not None]
        if name not in self.changed:
            return bool(meant)
        find = _lines_at_index if names_output_lines else partial(lines_at, is_complete=False)
        return find(span, self.changed[name]) in meant


def _lines_at_index(span: SourceSpan, text: str | None) -> list[str] | None:
    """Return the lines of this span if they are at the same index of the text. Return None otherwise."""
    found = split_lines(text or "")[span.at : span.at + span.count]
    return found if digest_lines(found) == span.digest else None


def lines_at(span: SourceSpan, text: str | None, *, is_complete: bool = True) -> list[str] | None:
    """Return the lines of this span if they are still in the text and consecutive. Return None otherwise.

    `is_complete`: the text lost no lines, so they are at the same index. If it lost lines, only the digest finds them.
    Return None if different lines have that digest, because such lines are easily made."""
    lines = split_lines(text or "")
    last = len(lines) - span.count
    if last < 0:
        return None
    chars = len(text or "") * span.count // len(lines) if lines else 0  # of `span.count` lines of average length
    starts = range(last + 1) if chars * last < MOST_SEARCHED else range(0)
    if is_complete and (found := _lines_at_index(span, text)) is not None:
        return found
    found = None
    for at in (min(span.at, last), *starts):
        here = lines[at : at + span.count]
        if here != found and digest_lines(here) == span.digest:
            if found is not None:
                return None
            found = here
    return found


def omitted_lines(record: MarkerRecord, texts: Sequence[str | None]) -> list[str] | None:
    """Return the lines that a marker replaces, or None if they are unknown. `texts`: one for each of its
    `source_spans`."""
    if record.lines:
        return record.lines.split("\n")
    found = [lines_at(span, text) for span, text in zip(record.source_spans, texts, strict=True)]
    known = [lines for lines in found if lines is not None]
    return [line for lines in known for line in lines] if known and len(known) == len(found) else None


def stale_markers(event: Delivered, remaining: Remaining) -> list[MarkerRecord]:
    """Return the markers of a reply whose lines are no longer all at their source."""
    return [record for record in event.markers if not remaining.confirms(record, event.when.call)]


def repair_markers(view: View, event: Delivered, lost: Sequence[MarkerRecord], restored: Delivered | None) -> Amended:
    """Return the reply with the markers `lost` repaired. A marker names the restored section if the section contains
    exactly its lines. Otherwise it is retired. `view`: as it was while the sources were there."""
    lines = event.text.split("\n")
    markers = [record for record in event.markers if record not in lost]
    for record in lost:
        if record.line < 0:  # the harness removed the marker: nothing to replace
            continue
        span = _span_in_section(view, record, restored) if restored is not None else None
        if restored is not None and span is not None:
            text = marker.write_moved(record.wording, what_of(record), restored.label)
            markers.append(replace(record, sources=(restored.call_id,), wording=text, source_spans=(span,)))
        else:
            text = marker.write_gone(record.wording, what_of(record), record.end - record.start + 1)
            markers.append(replace(record, sources=(), wording=text, source_spans=()))
        line = lines[record.line]
        start, end = marker.find_span(line, record.wording) or (0, len(line))
        lines[record.line] = line[:start] + text + line[end:]
    known = event.call_id, "\n".join(lines), event.source_map, tuple(markers)
    return Amended(*known, lost=False, head=event.head, tail=event.tail)


def what_of(record: MarkerRecord) -> str:
    """Return a description of the lines that a marker replaces."""
    if record.path is not None:
        return marker.name_lines(record.path, [(record.start, record.end)])
    return f"{marker.spell_lines([(record.start, record.end)])} of this output"


def _span_in_section(view: View, record: MarkerRecord, restored: Delivered) -> SourceSpan | None:
    """Return the span of the restored section with exactly the lines that the marker replaces, or None."""
    if record.path is None or record.numbered:  # the section shows no numbers
        return None
    meant = _meant_lines(view, record)
    if meant is None or len(meant) != record.end - record.start + 1:
        return None
    section = split_lines(restored.text)
    for mapped in restored.source_map:
        at = mapped.at + record.start - mapped.first
        inside = mapped.first <= record.start and record.end < mapped.first + mapped.count
        if mapped.keys == (record.path,) and inside and section[at : at + len(meant)] == meant:
            return SourceSpan(restored.call_id, Origin.RESTORED, at, len(meant), digest_lines(meant))
    return None


def _meant_lines(view: View, record: MarkerRecord) -> list[str] | None:
    """Return the omitted lines, from the sources that the marker names, or None if they are unknown."""
    texts = [
        next((d.event.text for d in view.of_call(span.call_id) if d.event.origin is span.origin), None)
        for span in record.source_spans
    ]
    return omitted_lines(record, texts)
