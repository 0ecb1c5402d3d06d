"""Tells a session of a recorded call, as a host would."""

from __future__ import annotations

from collections.abc import Iterable

from readcache import Frame, Outcome, Reply, Session
from readcache.transcripts.records import AskedCommand, AskedRead, RecordedCall


def answer_recorded(session: Session, call: RecordedCall) -> Reply | None:
    """The session's reply to the call. None: the result stays as it is."""
    asked, known = call.asked, {"call_id": call.call_id, "batch": call.batch or None}
    reply = None
    if isinstance(asked, AskedCommand):
        frame = Frame(asked.head, asked.tail) if asked.head or asked.tail else None
        status = {"exit_code": asked.exit_code, "complete": call.complete, "frame": frame}
        reply = session.observe(asked.command, call.output, cwd=asked.cwd, **status, **known)  # type: ignore[arg-type]
    elif isinstance(asked, AskedRead):
        lines = {"start": asked.start, "end": asked.end, "numbered": asked.numbered}
        status = {"complete": call.complete, "edges_only": asked.edges_only}
        status["frame"] = Frame(0, asked.tail) if asked.tail else None
        reply = session.observe_read(asked.path, call.output, **lines, **status, **known)  # type: ignore[arg-type]
    elif asked is not None:
        reply = session.observe_tool(asked.name, call.output, arguments=asked.arguments, **known)  # type: ignore[arg-type]
    for written in call.writes:
        session.wrote(written.path, content=written.content, call_id=call.call_id)
    return reply


def show_restored(session: Session, calls: Iterable[RecordedCall]) -> None:
    """The reader was shown these by its host, in full."""
    for call in calls:
        reply = answer_recorded(session, call)
        if reply is not None and reply.outcome is not Outcome.FULL:
            session.settle(call.call_id, call.output)
