"""`explain PATH`: what was shown of a file, what of it is visible, and why its last read was or was not cut."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from readcache import Outcome
from readcache.cli.output import say
from readcache.cli.show import call_of, clock, open_recorded, row, short
from readcache.core.model.events import Delivered, Event, Failed, Origin, Record, Wrote
from readcache.core.model.key_view import KeyView
from readcache.core.model.paths import canonical_path
from readcache.core.model.spans import Spans, merge_spans
from readcache.core.model.view import View
from readcache.core.model.writes import concerns
from readcache.process.settings import Settings

_LAST = 1 << 60  # past the end of any file
_ORIGINS = {Origin.RESULT: "shown", Origin.COMMAND: "the agent's own command has", Origin.RESTORED: "restored"}


def explain_command(options: argparse.Namespace, settings: Settings) -> int:
    """Prints the account; as of right after the call `--at`, where one is named. 1 where nothing is known of
    the file."""
    path, at = options.path, options.at
    with open_recorded(settings, at) as (session, cursor):
        view, records = cursor.view, cursor.past
    key = path if path.startswith("git:") else canonical_path(path, os.getcwd())
    own = [record for record in records if record.agent_id == session.agent_id]
    shown = [(r, r.event) for r in own if isinstance(r.event, Delivered) and _shows(r.event, key)]
    then = f", as of after {at}" if at else ""
    say(f"{key} in session {session.session_id}, agent {session.agent_id}{then}")
    _section("shown", [_shown_line(record, event, view, key) for record, event in shown])
    _section("visible then" if at else "visible now", _visible_lines(view.key(key)))
    was_asked = _explain_last_read(own, key)
    _section("writes seen", [_in_line(record) for record in records if _writes(record.event, key)])
    if failures := [_in_line(record) for record in own if isinstance(record.event, Failed)]:
        _section("failures of readcache in this session (the real output was shown)", failures)
    if shown or was_asked:
        return 0
    if others := [other for other in view.namesakes(key) if other != key]:
        say(f"  files of that name which were shown: {', '.join(others)}")
    return 1


def _section(title: str, lines: Sequence[str]) -> None:
    say(f"  {title}:")
    for line in lines or ["nothing"]:
        say(f"    {line}")


def _in_line(record: Record) -> str:
    return "  ".join(cell for cell in row(record) if cell)


def _shows(event: Delivered, path: str) -> bool:
    return any(path in mapped.keys for mapped in event.source_map) or any(p.path == path for p in event.markers)


def _writes(event: Event, path: str) -> bool:
    return isinstance(event, Wrote) and any(concerns(key, path) for key in (*event.keys, *event.possible_writes))


def _shown_line(record: Record, event: Delivered, view: View, path: str) -> str:
    gone = "" if view.is_visible(event.call_id) else "; gone from view"
    return f"{clock(record.at)}  {call_of(event)}  {_what_was_shown(event, path)}: {short(event.label)}{gone}"


def _what_was_shown(event: Delivered, path: str) -> str:
    source_map = [mapped for mapped in event.source_map if path in mapped.keys]
    spans = merge_spans((mapped.first, mapped.first + mapped.count - 1) for mapped in source_map if mapped.first)
    loose = sum(mapped.count for mapped in source_map if not mapped.first)
    left_out = merge_spans((p.start, p.end) for p in event.markers if p.path == path)
    parts = [
        f"{_ORIGINS[event.origin]} lines {_in_words(spans)}" if spans else "",
        f"{loose} lines, numbers unknown" if loose else "",
        f"left out {_in_words(left_out)}" if left_out else "",
    ]
    return "; ".join(part for part in parts if part)


def _in_words(spans: Spans) -> str:
    return ", ".join(f"{start}-{end}" for start, end in spans)


def _visible_lines(known: KeyView) -> list[str]:
    out = []
    for start, end, visible in known.numbered.overlaps(1, _LAST):
        event = visible.event
        out.append(f"lines {start}-{end} in {event.call_id}: {short(event.label)}")
    for visible in known.loose:
        event, count = visible.event, visible.mapped.count
        out.append(f"{count} lines, numbers unknown, in {event.call_id}: {short(event.label)}")
    if known.stale and known.invalid is not None:
        cause = "the agent's write" if known.invalid.written else "a change"
        calls = ", ".join(dict.fromkeys(visible.event.call_id for visible in known.stale))
        out.append(f"as it was before {cause}: {calls}")
    return out


def _explain_last_read(records: Sequence[Record], path: str) -> bool:
    """False where there is none."""
    for record in reversed(records):
        event = record.event
        if not isinstance(event, Delivered) or event.account is None:
            continue
        outcome, reason = event.account.outcome, event.account.reason
        if _shows(event, path) or path in event.account.asked:
            verdict = "all of it was shown" if outcome is Outcome.FULL else f"cut ({outcome.value})"
            say(f"  last read: {event.call_id}, {short(event.label)}")
            say(f"    {verdict}; {reason.value}: {reason.why}")
            return True
    say("  last read: none that was recorded")
    return False
