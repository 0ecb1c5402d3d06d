"""The session that readcache would have kept for a recorded conversation, with all its readers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from glob import escape, glob

from readcache import Policy, Session
from readcache.core.model.tool_call import ToolCall
from readcache.report.replay.answers import answer_recorded, show_restored
from readcache.transcripts.files import find_files, read_content, units_of
from readcache.transcripts.formats import recordings_in
from readcache.transcripts.records import HistoryRemoval, NotUnderstood, Recording


def conversations_in(path: str) -> list[list[Recording]]:
    """The conversations of a file, or of a directory, each with all its readers, in order.

    NotUnderstood for a file that is not a transcript, UsageError for one that is not there."""
    found: dict[tuple[str, str], list[Recording]] = {}
    # Claude Code keeps what sub-agents did beside the conversation's own file.
    beside = sorted(glob(f"{escape(os.path.splitext(path)[0])}/subagents/*.jsonl"))
    for file in find_files([path, *beside]):
        try:
            for recording in (one for unit in units_of(file) for one in recordings_in(read_content(unit))):
                found.setdefault((recording.form, recording.name), []).append(recording)
        except NotUnderstood:
            if file.named:
                raise
    return list(found.values())


def replayed_session(readers: Sequence[Recording], policy: Policy) -> Session:
    """A session in memory that was told of all of it; `events` has every reader's, without times: transcripts do not
    say when a result came."""
    first = Session("/", session_id=readers[0].name, policy=policy, local=False, clock=lambda: 0.0)
    agent = next((recording for recording in readers if recording.reader == first.agent_id), None)
    for recording in readers:
        session = first if recording is agent else first.fork(recording.reader)
        for item in recording.items:
            if isinstance(item, ToolCall):
                answer_recorded(session, item)
            elif isinstance(item, HistoryRemoval):
                session.compacted(keep=item.kept)
                show_restored(session, item.restored)
    return first
