"""Markers whose source has left the conversation: pointed at where the lines stand now, or retired."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from readcache.judging import marker
from readcache.model.events import Delivered, Origin, Pointer, Settled, Stand
from readcache.model.text import digest_lines, split_lines
from readcache.model.view import View

# Characters that a search for lines in a text that was cut may compare; what would take more is taken for gone.
MOST_SEARCHED = 20_000_000


class Remaining:
    """What the reader will still see of the view. `stays(call_id)`: may anything of the call remain? `cut`: the
    texts that lost lines, by call id and origin; None for one that is gone."""

    def __init__(
        self,
        view: View,
        stays: Callable[[str], bool],
        cut: Mapping[tuple[str, Origin], str | None] | None = None,
    ) -> None:
        self._view = view
        self._stays = stays
        self.cut = dict(cut or {})
        self._cut_calls = {call_id for call_id, _ in self.cut}

    def lose(self, call_id: str, origin: Origin) -> None:
        """That text is gone, too."""
        self.cut[call_id, origin] = None
        self._cut_calls.add(call_id)

    def holds(self, pointer: Pointer, call: int) -> bool:
        """Do all the lines that a marker of call number `call` stands for still stand where it says?"""
        for source in pointer.sources:  # written out: every sync comes by for every marker
            if not self._has_stayed(source, call) and not self._holds_at(source, pointer, call):
                return False
        return True

    def _has_stayed(self, source: str, call: int) -> bool:
        if source in self._cut_calls or not self._stays(source):
            return False
        return self._view.lost_at.get(source, 0) < call

    def _holds_at(self, source: str, pointer: Pointer, call: int) -> bool:
        stands = [stand for stand in pointer.stands if stand.call_id == source]
        names_places = marker.PLACES in pointer.wording
        return (
            bool(stands) and self._stays(source) and all(self._holds_lines(each, call, names_places) for each in stands)
        )

    def _holds_lines(self, stand: Stand, call: int, names_places: bool) -> bool:
        name = stand.call_id, stand.origin
        is_whole = stand.call_id not in self._view.lost_at
        find = _lines_in_place if names_places else partial(lines_at, is_whole=is_whole)
        known = [d for d in self._view.of_call(stand.call_id) if d.event.origin is stand.origin]
        # a later call of the id stands below the marker; a restored section is above, whenever it came
        texts = [d.event.text for d in known if d.call <= call or stand.origin is Origin.RESTORED]
        meant = [lines for text in texts if (lines := find(stand, text)) is not None]
        if name not in self.cut:
            return bool(meant)
        find = _lines_in_place if names_places else partial(lines_at, is_whole=False)
        return find(stand, self.cut[name]) in meant


def _lines_in_place(stand: Stand, text: str | None) -> list[str] | None:
    """The lines that stood there, if they stand at the same place of the text; None if they do not."""
    found = split_lines(text or "")[stand.at : stand.at + stand.count]
    return found if digest_lines(found) == stand.digest else None


def lines_at(stand: Stand, text: str | None, *, is_whole: bool = True) -> list[str] | None:
    """The lines that stood there, if they still stand in the text, in one piece; None if they do not. `is_whole`: the
    text lost no lines, so that they stand where they did. Elsewhere the digest alone finds them: None if different
    lines have it, which is easily made."""
    lines = split_lines(text or "")
    last = len(lines) - stand.count
    if last < 0:
        return None
    chars = len(text or "") * stand.count // len(lines) if lines else 0  # of as many lines
    places = range(last + 1) if chars * last < MOST_SEARCHED else range(0)
    if is_whole and (found := _lines_in_place(stand, text)) is not None:
        return found
    found = None
    for at in (min(stand.at, last), *places):
        here = lines[at : at + stand.count]
        if here != found and digest_lines(here) == stand.digest:
            if found is not None:
                return None
            found = here
    return found


def omitted_lines(pointer: Pointer, texts: Sequence[str | None]) -> list[str] | None:
    """The lines that a marker stands for; `texts` are those of its `stands`. None when they are not known."""
    if pointer.lines:
        return pointer.lines.split("\n")
    found = [lines_at(stand, text) for stand, text in zip(pointer.stands, texts, strict=True)]
    known = [lines for lines in found if lines is not None]
    return [line for lines in known for line in lines] if known and len(known) == len(found) else None


def dangling(event: Delivered, remaining: Remaining) -> list[Pointer]:
    """The pointers of a reply whose lines do not all stand any more where its markers say."""
    return [pointer for pointer in event.pointers if not remaining.holds(pointer, event.when.call)]


def mend(view: View, event: Delivered, lost: Sequence[Pointer], restored: Delivered | None) -> Settled:
    """The reply with the markers `lost` pointed at the restored section, where that holds the very lines, or retired.
    `view` is as it was while the sources were there."""
    lines = event.text.split("\n")
    pointers = [pointer for pointer in event.pointers if pointer not in lost]
    for pointer in lost:
        if pointer.line < 0:  # the harness cut the marker away: nothing to replace
            continue
        stand = _stand_in(view, pointer, restored) if restored is not None else None
        if restored is not None and stand is not None:
            text = marker.write_moved(pointer.wording, what_of(pointer), restored.label)
            pointers.append(replace(pointer, sources=(restored.call_id,), wording=text, stands=(stand,)))
        else:
            text = marker.write_gone(pointer.wording, what_of(pointer))
            pointers.append(replace(pointer, sources=(), wording=text, stands=()))
        line = lines[pointer.line]
        start, end = marker.find_span(line, pointer.wording) or (0, len(line))
        lines[pointer.line] = line[:start] + text + line[end:]
    known = event.call_id, "\n".join(lines), event.pieces, tuple(pointers)
    return Settled(*known, lost=False, head=event.head, tail=event.tail)


def what_of(pointer: Pointer) -> str:
    """What a marker stands for, in words."""
    if pointer.path is not None:
        return marker.name_lines(pointer.path, [(pointer.start, pointer.end)])
    return f"lines {pointer.start}-{pointer.end} of this output"


def _stand_in(view: View, pointer: Pointer, restored: Delivered) -> Stand | None:
    """Where the restored section holds the very lines that the marker stands for."""
    if pointer.path is None or pointer.numbered:  # the section shows no numbers
        return None
    meant = _meant_lines(view, pointer)
    if meant is None or len(meant) != pointer.end - pointer.start + 1:
        return None
    section = split_lines(restored.text)
    for piece in restored.pieces:
        at = piece.at + pointer.start - piece.first
        inside = piece.first <= pointer.start and pointer.end < piece.first + piece.count
        if piece.keys == (pointer.path,) and inside and section[at : at + len(meant)] == meant:
            return Stand(restored.call_id, Origin.RESTORED, at, len(meant), digest_lines(meant))
    return None


def _meant_lines(view: View, pointer: Pointer) -> list[str] | None:
    """The omitted lines, from the sources that the marker names."""
    texts = [
        next((d.event.text for d in view.of_call(stand.call_id) if d.event.origin is stand.origin), None)
        for stand in pointer.stands
    ]
    return omitted_lines(pointer, texts)
