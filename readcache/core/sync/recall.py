"""Find the text of a call in a reader's log, as the reader was shown it, with its omissions filled in. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from readcache.core.judging.marker import RECALL
from readcache.core.model.claims import concerns
from readcache.core.model.events import Amended, Delivered, MarkerRecord, Origin, Record, Wrote
from readcache.core.model.text import digest_lines, split_lines
from readcache.core.model.unconfirmed import lacks_text

_COMMAND = re.compile(r"\s*readcache recall (\w{4,8}\.\d{1,9})(?: (\d{1,9})-(\d{0,9}))?\s*")
# What the command prints if nobody answers it at the door. It is true everywhere: in a container, without permission to
# read the store, and if readcache is off.
UNANSWERED = "readcache: nothing can be recalled here; repeat the earlier call to see its result as it is now\n"
_Texts = dict[tuple[str, Origin], list[str]]  # the lines of each text of a call, as they are at that time


class AskedRecall(NamedTuple):
    """A request to recall lines `first` to `last` (1-based, inclusive; None: to the end) of the call `name`."""

    name: str
    first: int = 1
    last: int | None = None


def asked_recall(command: str) -> AskedRecall | None:
    """Return the request of a command that is exactly `readcache recall NAME [FIRST-LAST]`; None for others."""
    found = _COMMAND.fullmatch(command) if RECALL in command else None
    return None if found is None else AskedRecall(found[1], int(found[2] or 1), int(found[3]) if found[3] else None)


@dataclass(frozen=True, slots=True)
class Recalled:
    """A call's result as it was shown. `text`: None if the log does not have it. `at`: when it was shown, in seconds
    since the epoch. `changed`: its files that were written later, or were seen to have changed."""

    call_id: str
    label: str
    text: str | None
    at: float
    keys: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()


def recall(records: Iterable[Record], agent_id: str, number: int) -> Recalled | None:
    """Return the newest result of call `number` (from 1) of this reader; None if there is none. `records`: the reader's
    records, and the writes of other readers."""
    texts: _Texts = {}
    found: Recalled | None = None
    for record in records:
        event = record.event
        if isinstance(event, Wrote) or record.agent_id != agent_id:
            written = (*event.keys, *event.possible_writes) if isinstance(event, Wrote) else ()
            found = found and _with_changed(found, written)
        elif isinstance(event, Delivered):
            found = found and _with_changed(found, event.changed)
            is_placeholder = not event.text and event.account is None  # stands for a call that a fork did not inherit
            if event.when.call == number and event.origin is Origin.RESULT and not is_placeholder:
                text = None if lacks_text(event) else _filled(event, texts)
                found = Recalled(event.call_id, event.label, text, record.at, _keys(event))
            texts[event.call_id, event.origin] = split_lines(event.text)
        elif isinstance(event, Amended) and not event.confirms:
            is_it = found is not None and (event.call_id, event.origin) == (found.call_id, Origin.RESULT)
            # A later amendment that erases nothing only says what is left of the text in the conversation.
            if found is not None and is_it and (event.erases or found.text is None):
                found = replace(found, text=_filled(event, texts) or None, keys=_keys(event))
            texts[event.call_id, event.origin] = split_lines(event.text)
    return found


def _with_changed(found: Recalled, written: Sequence[str]) -> Recalled:
    """Return the call, with the files that a write to `written` changed."""
    changed = frozenset(key for key in found.keys if any(concerns(one, key) for one in written))
    return replace(found, changed=found.changed | changed) if changed else found


def _keys(event: Delivered | Amended) -> frozenset[str]:
    shown = {key for mapped in event.source_map for key in mapped.keys}
    return frozenset(shown | {marker.path for marker in event.markers if marker.path is not None})


def _filled(event: Delivered | Amended, texts: _Texts) -> str:
    """Return the event's text, with the host's words around it, and the omitted lines instead of each marker. A marker
    stays if the log no longer has its lines."""
    lines = event.text.split("\n")
    for marker in sorted(event.markers, key=lambda marker: -marker.line):
        omitted = _omitted(marker, texts)
        if omitted is not None and 0 <= marker.line < len(lines) and lines[marker.line] == marker.wording:
            lines[marker.line : marker.line + 1] = omitted
    return event.head + "\n".join(lines) + event.tail


def _omitted(marker: MarkerRecord, texts: _Texts) -> list[str] | None:
    """Return the lines that a marker replaced; None if the log no longer has exactly these lines."""
    if marker.lines:
        return marker.lines.split("\n")
    lines: list[str] = []
    for span in marker.source_spans:
        found = texts.get((span.call_id, span.origin), [])[span.at : span.at + span.count]
        if len(found) != span.count or digest_lines(found) != span.digest:
            return None
        lines += found
    return lines or None
