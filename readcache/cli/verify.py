"""`verify`: is every omission right, by the specification? Of a store, of one session in it, or of a transcript."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from readcache.cli.output import say
from readcache.core.model.errors import ReadcacheError
from readcache.core.model.policy import Policy
from readcache.core.model.records import events_for, unreadable_events
from readcache.log.store import open_store
from readcache.process.settings import Settings, require_store
from readcache.process.state import require_recorded

_SQLITE = b"SQLite format 3\0"


class _Verdict(NamedTuple):
    """What is said of one reader. `untold`: why some omissions cannot be told, "" for none."""

    who: str
    proven: int
    faults: list[str]
    untold: str = ""


def verify_command(options: argparse.Namespace, settings: Settings) -> int:
    """One line for each reader with omissions; 1 when an omission is wrong."""
    source = options.source or ""
    is_store = os.path.isfile(source) and _begins_with(source, _SQLITE)
    if os.path.exists(source) and not is_store:
        verdicts = list(_of_transcripts(source, settings.policy))
    else:
        spec = source if is_store else settings.store_spec()
        verdicts = list(_of_store(spec, "" if is_store else source or options.session or "", options.agent))
    for verdict in verdicts:
        for fault in verdict.faults:
            say(f"broken: {fault}")
        if verdict.untold:
            say(f"cannot be told: {verdict.who}: {verdict.untold}")
    proven, broken = sum(verdict.proven for verdict in verdicts), any(verdict.faults for verdict in verdicts)
    readers = f"{len(verdicts):,} reader{'' if len(verdicts) == 1 else 's'}"
    say(f"{'broken' if broken else 'holds'}: {proven:,} omissions of {readers} proven")
    return 1 if broken else 0


def _begins_with(path: str, mark: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read(len(mark)) == mark


def _of_store(spec: str, session: str, agent: str | None) -> Iterator[_Verdict]:
    """Of all its readers, or of those that are named. ReadcacheError where there are none."""
    from readcache.report.log_check import LogCheck

    require_store(spec)
    require_recorded(spec)
    with closing(open_store(spec)) as store:
        contexts = [each[:2] for each in store.sessions()]
        wanted = [pair for pair in contexts if session in ("", pair[0]) and agent in (None, pair[1])]
        if not wanted:
            raise ReadcacheError(f"{spec} has no session {session!r}: `readcache sessions` lists them")
        for name, reader in wanted:
            records, check = list(store.records(name, reader)), LogCheck()
            check.begin(name, reader, records)
            for event in events_for(records, reader):
                check.take(event)
            unread = sum(1 for _ in unreadable_events(records))
            untold = f"{unread} events in the store cannot be read" if unread else ""
            yield _Verdict(f"session {name}, {reader}", check.proven, check.faults, untold)


def _of_transcripts(path: str, preset: str) -> Iterator[_Verdict]:
    """Of what readcache would have omitted in the conversations of a file, or of a directory."""
    from readcache.report.replay.replayed_session import conversations_in
    from readcache.report.replay.replayer import replay_recording

    conversations = conversations_in(path)
    if not conversations:
        raise ReadcacheError(f"no conversation found in {path}")
    for recording in (reader for readers in conversations for reader in readers):
        totals = replay_recording(recording, {preset: Policy.named(preset)}).totals.policies[preset]
        who = f"{recording.name}, {recording.reader}"
        faults = [f"{who}, call {fault}" for fault in totals.wrong]
        yield _Verdict(who, totals.counts["markers"] - totals.counts["wrong"], faults)
