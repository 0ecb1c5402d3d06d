"""Pass a recorded call to a session, as a host would."""

from __future__ import annotations

from collections.abc import Iterable

from readcache import Outcome, Reply, Session
from readcache.core.model.tool_call import ToolCall


def answer_recorded(session: Session, call: ToolCall) -> Reply | None:
    """Record the call and its writes. Return the session's reply; None if the call is not judged, so that its result
    stays unchanged."""
    reply = session.answer(call) if call.is_judged else None
    for written in call.writes:
        session.wrote(written.path, content=written.content, call_id=call.call_id)
    return reply


def show_restored(session: Session, calls: Iterable[ToolCall]) -> None:
    """Record that the host showed these calls to the reader in full."""
    for call in calls:
        reply = answer_recorded(session, call)
        if reply is not None and reply.outcome is not Outcome.FULL:
            session.settle(call.call_id, call.output)
