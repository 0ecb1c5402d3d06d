"""`explain PATH` and `verify`: report what the log says about a file, and check every omission.

`explain` reports which lines of a file were shown, which are visible, and why its last read was or was not shortened.
`verify` checks a store, one session in it, or a transcript against the specification.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from readcache import Outcome
from readcache.cli.output import clock, say
from readcache.cli.sessions import contexts
from readcache.cli.show import call_of, open_recorded, row, short
from readcache.core.model.claims import concerns
from readcache.core.model.errors import ReadcacheError
from readcache.core.model.events import Delivered, Event, Failed, Origin, Record, Wrote
from readcache.core.model.key_view import KeyView
from readcache.core.model.paths import canonical_path
from readcache.core.model.policy import Policy
from readcache.core.model.records import events_for, unreadable_events
from readcache.core.model.spans import Spans, merge_spans
from readcache.core.model.view import View
from readcache.log.store import open_store
from readcache.process.settings import Settings, require_store
from readcache.process.state import require_recorded
from readcache.report import many

_LAST = 1 << 60  # past the end of any file
_ORIGINS = {Origin.RESULT: "shown", Origin.COMMAND: "the agent's own command has", Origin.RESTORED: "restored"}
_SQLITE = b"SQLite format 3\0"


def explain_command(options: argparse.Namespace, settings: Settings) -> int:
    """Print a report about a file, with `--at` as it was right after that call. Return 1 if the log has no lines of
    the file, and no read of it."""
    path, at = options.path, options.at
    with open_recorded(settings, at) as (session, cursor):
        view, records = cursor.view, cursor.past
        files = [] if at else session.files()
    key = path if path.startswith("git:") else canonical_path(path, os.getcwd())
    own = [record for record in records if record.agent_id == session.agent_id]
    shown = [(r, r.event) for r in own if isinstance(r.event, Delivered) and _shows(r.event, key)]
    then = f", as of after {at}" if at else ""
    say(f"{key} in session {session.session_id}, agent {session.agent_id}{then}")
    _section("shown", [_shown_line(record, event, view, key) for record, event in shown])
    _section("visible then" if at else "visible now", _visible_lines(view.key(key)))
    for file in (file for file in files if file.path == key and os.path.exists(key)):  # it may be on another machine
        state = "has the visible lines" if file.on_disk else "does not have the visible lines"
        say(f"  disk: {state}" + (f"; SHA-256 of the version shown: {file.hash}" if file.hash else ""))
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
    """Print a report about the last read of a file. Return False if there is none."""
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


class _Verdict(NamedTuple):
    """The result of the check for one reader. `untold`: why some omissions cannot be checked, or ""."""

    who: str
    proven: int
    faults: list[str]
    untold: str = ""


def verify_command(options: argparse.Namespace, settings: Settings) -> int:
    """Print a line for each wrong omission, a line for each reader that cannot be checked completely, and the sum.
    Return 1 if an omission is wrong."""
    source = options.source or ""
    is_store = os.path.isfile(source) and _begins_with(source, _SQLITE)
    if os.path.exists(source) and not is_store:
        verdicts = list(_of_transcripts(source, settings.policy))
    else:
        spec = source if is_store else settings.store_spec()
        verdicts = list(_of_store(spec, None if is_store else source or options.session or None, options.agent))
    for verdict in verdicts:
        for fault in verdict.faults:
            say(f"broken: {fault}")
        if verdict.untold:
            say(f"cannot be told: {verdict.who}: {verdict.untold}")
    proven, broken = sum(verdict.proven for verdict in verdicts), any(verdict.faults for verdict in verdicts)
    say(f"{'broken' if broken else 'holds'}: {proven:,} omissions of {many(len(verdicts), 'reader')} proven")
    return 1 if broken else 0


def _begins_with(path: str, mark: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read(len(mark)) == mark


def _of_store(spec: str, session: str | None, agent: str | None) -> Iterator[_Verdict]:
    """Yield the verdicts about the readers in a store: all, or only the named ones. Raise ReadcacheError if there are
    none."""
    from readcache.report.log_check import LogCheck

    require_store(spec)
    require_recorded(spec)
    with closing(open_store(spec)) as store:
        wanted = contexts(store, session, agent)
        if not wanted:
            raise ReadcacheError(f"{spec} has no session {session or ''!r}: `readcache sessions` lists them")
        for name, reader, *_ in wanted:
            records, check = list(store.records(name, reader)), LogCheck()
            check.begin(name, reader, records)
            for event in events_for(records, reader):
                check.take(event)
            unread = sum(1 for _ in unreadable_events(records))
            untold = f"{unread} events in the store cannot be read" if unread else ""
            yield _Verdict(f"session {name}, {reader}", check.proven, check.faults, untold)


def _of_transcripts(path: str, preset: str) -> Iterator[_Verdict]:
    """Yield the verdicts about a replay of the conversations in a file or a directory, with the policy `preset`. Raise
    ReadcacheError if there are none."""
    from readcache.report.replay.replayer import conversations_in, replay_recording

    conversations = conversations_in(path)
    if not conversations:
        raise ReadcacheError(f"no conversation found in {path}")
    for recording in (reader for readers in conversations for reader in readers):
        totals = replay_recording(recording, {preset: Policy.named(preset)}).policies[preset]
        who = f"{recording.name}, {recording.reader}"
        faults = [f"{who}, call {fault}" for fault in totals.wrong]
        yield _Verdict(who, totals.counts["markers"] - totals.counts["wrong"], faults)
