"""What the log must say when the harness compacts: what is gone, what was restored, and no marker left dangling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from readcache import marker
from readcache.cover import differs
from readcache.events import Compacted, Delivered, Event, Origin, Pointer, Settled
from readcache.restore import Compaction, RestorePlan
from readcache.text import split_lines
from readcache.view import View


def compact(
    view: View, kept: frozenset[str], plan: RestorePlan | None, *, restored_id: str, session_tag: str, tokens: int
) -> tuple[Compaction, list[Event]]:
    """The answer to the harness and the events to append. `view` is as before the compaction; `tokens` are those of
    the restored section."""
    restored = _restored(view, plan, restored_id, tokens)
    events: list[Event] = [Compacted(kept)]
    if restored is not None:
        events.append(restored)
    rewrites: dict[str, str] = {}
    for delivery in view.deliveries:
        event = delivery.event
        if event.call_id not in kept or event.origin is not Origin.RESULT:
            continue
        settled = _rewrite(view, event, kept, restored, session_tag)
        if settled is not None:
            events.append(settled)
            rewrites[event.call_id] = settled.text
    return Compaction(restored_id if restored is not None else None, rewrites), events


def _restored(view: View, plan: RestorePlan | None, restored_id: str, tokens: int) -> Delivered | None:
    if plan is None or not plan.items:
        return None
    section = split_lines(plan.render())
    differing = {
        piece.keys[0]
        for piece in plan.pieces()
        if differs(view, view.key(piece.keys[0]), piece, section[piece.at : piece.at + piece.count])
    }
    return Delivered(
        call_id=restored_id,
        text=plan.render(),
        label=plan.heading,
        origin=Origin.RESTORED,
        pieces=plan.pieces(),
        changed=tuple(sorted(differing)),
        call=view.calls + 1,
        tokens_so_far=view.tokens + tokens,
    )


def _rewrite(
    view: View, event: Delivered, kept: frozenset[str], restored: Delivered | None, session_tag: str
) -> Settled | None:
    """The kept reply with markers that name a lost source re-pointed to the restored section, or retired."""
    still = {source for pointer in event.pointers for source in pointer.sources if source in kept}
    still = {source for source in still if view.cut.get(source, 0) < event.call}
    lost = [pointer for pointer in event.pointers if not still.issuperset(pointer.sources)]
    if not lost:
        return None
    lines = event.text.split("\n")
    pointers: list[Pointer] = [pointer for pointer in event.pointers if pointer not in lost]
    for pointer in lost:
        if pointer.line < 0:  # cut away: nothing to replace, but the harness hears of the reply all the same
            continue
        if restored is not None and _stands_in(view, pointer, restored):
            source = marker.Source(restored.label, restored=True)
            text = marker.write_marker(session_tag, _what(pointer), [source])
            lines[pointer.line] = text
            pointers.append(replace(pointer, sources=(restored.call_id,), marker=text))
        else:
            lines[pointer.line] = marker.write_gone(session_tag, _what(pointer))
    return Settled(event.call_id, "\n".join(lines), event.pieces, tuple(pointers))


def _what(pointer: Pointer) -> str:
    if pointer.path is not None:
        return marker.name_lines(pointer.path, [(pointer.start, pointer.end)])
    return f"lines {pointer.start}-{pointer.end} of this output"


def _stands_in(view: View, pointer: Pointer, restored: Delivered) -> bool:
    """Does the restored section hold the very lines that the marker stands for?"""
    if pointer.path is None or pointer.numbered:  # the section shows no numbers
        return False
    meant = _meant_lines(view, pointer)
    if meant is None:
        return False
    section = split_lines(restored.text)
    for piece in restored.pieces:
        at = piece.at + pointer.start - piece.first
        inside = piece.first <= pointer.start and pointer.end < piece.first + piece.count
        if piece.keys == (pointer.path,) and inside:
            return section[at : at + len(meant)] == meant
    return False


def _meant_lines(view: View, pointer: Pointer) -> Sequence[str] | None:
    """The omitted lines, from the sources that the marker names."""
    assert pointer.path is not None
    out: list[str] = []
    for start, end, reference in view.key(pointer.path).numbered.overlaps(pointer.start, pointer.end):
        first = reference.piece.first
        if reference.delivery.event.call_id not in pointer.sources or start != pointer.start + len(out):
            return None
        out += view.bodies(reference)[start - first : end - first + 1]
    return out if len(out) == pointer.end - pointer.start + 1 else None
