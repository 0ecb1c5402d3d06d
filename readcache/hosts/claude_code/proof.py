"""Opens the transcript of a call, and asks it what the model was sent."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from readcache import Outcome, Reply, Session
from readcache.core.model.events import Origin
from readcache.hosts.claude_code.results import names_true_lines
from readcache.hosts.plain_file import open_plain
from readcache.transcripts.claude_code import MOST, Transcript, bare

if TYPE_CHECKING:
    from readcache import Sessions

Event = Mapping[str, Any]
NEWEST = 2_000_000  # bytes at its end that are read first
PAUSE, SOON, PATIENCE = 0.01, 0.2, 0.6  # seconds; Claude Code writes every 0.1 s what is new, if at all
MAY_MOVE = re.compile(r"\b(?:cd|pushd|popd)\b")


class TranscriptProof:
    """What the transcript says of one event's call."""

    def __init__(self, event: Event) -> None:
        self._event = event
        path = event.get("transcript_path") or ""
        if agent := event.get("agent_id"):
            path = os.path.join(path.removesuffix(".jsonl"), "subagents", f"agent-{agent}.jsonl")
        self._path = path

    def of(self, reply: Reply, session: Session) -> bool:
        """True if everything omitted is visible, at the lines that the marker names."""
        if not names_true_lines(reply, self._event, session):
            return False
        restored = (d.event for d in session.view.deliveries if d.event.origin is Origin.RESTORED)
        sections = {event.call_id: event.text for event in restored}
        wanted = [({bare(line) for line in lines}, omitted.sources) for omitted, _, lines in reply.omissions()]
        return any(
            all(
                lines <= set().union(*(part.lines_of(name, reply.call_id, sections.get(name)) for name in sources))
                for lines, sources in wanted
            )
            for part in transcripts(self._path, reply.call_id)
        )

    def source(self, conversation: str) -> str | None:
        """See `Transcript.source`."""
        return Transcript(tail(self._path)).source(conversation)

    def may_have_removed(self, since: float) -> bool:
        """See `Transcript.may_have_removed`. Wait for a request that Claude Code has yet to write down."""
        until = time.monotonic() + SOON
        while (newest := Transcript(tail(self._path))).lacks_request(since) and time.monotonic() < until:
            time.sleep(PAUSE)
        return newest.may_have_removed(since)

    def directory(self) -> str | None:
        """Where the command began. The event has where it ended. None when it is not known."""
        command = str(self._event["tool_input"].get("command", ""))
        if not MAY_MOVE.search(command):
            return str(self._event["cwd"])
        found = next(transcripts(self._path, self._event["tool_use_id"]), None)
        return None if found is None else found.call(self._event["tool_use_id"]).get("cwd")

    def confirm_shown(self, session: Session) -> None:
        """Tell the session which texts the model was sent for the replies that it gave since. Those that the transcript
        does not have yet stay unconfirmed. Call it after `credit_restored`, which has brought the view up to date."""
        if not (waiting := session.reader.log.view.waiting):
            return
        newest = Transcript(tail(self._path))
        for call_id, event in list(waiting.items()):
            if (text := newest.result_of(call_id)) is None:
                continue
            if all(marker.wording in text for marker in event.markers):
                session.commit(call_id)
            else:
                session.settle(call_id, text)

    def credit_restored(self, session: Session) -> None:
        """The model sees what Claude Code read again by itself after a compaction. Call it before what comes next."""
        visible, call_id = session.view.deliveries, self._event.get("tool_use_id")
        if any(delivery.event.origin is not Origin.RESTORED for delivery in visible):
            return
        newest: Transcript | None = Transcript(tail(self._path))
        if visible and call_id:  # there was a compaction, of which the transcript may not tell yet
            newest = next(transcripts(self._path, call_id), None)
        for name, file in newest.restored_files() if newest is not None else ():
            reply = session.observe_read(file["filePath"], file["content"], start=file["startLine"], call_id=name)
            if reply.outcome is not Outcome.FULL:
                session.settle(reply.call_id, reply.full_text)


def session_of(event: Event, sessions: Sessions) -> Session:
    """The session of the event's reader. That of a forked conversation begins with what its source sees; whether that
    stands in its own transcript, too, is proven for each marker."""
    conversation, agent = event["session_id"], event.get("agent_id")
    session = sessions.get(conversation, agent or "main")
    if not agent and not session.view.calls.number and (source := TranscriptProof(event).source(conversation)):
        sessions.inherit(conversation, source)
    return session


def transcripts(path: str, call_id: str) -> Iterator[Transcript]:
    """The transcript once the call is in it: first its newest part, then all of it. Nothing when it does not come."""
    until = time.monotonic() + (PATIENCE if os.path.exists(path) else SOON)
    while not (newest := Transcript(tail(path))).call(call_id):
        if time.monotonic() > until:
            return
        time.sleep(PAUSE)
    yield newest
    if os.path.getsize(path) > NEWEST:
        yield Transcript(tail(path, MOST))


def tail(path: str, size: int = NEWEST) -> bytes:
    """Return the last `size` bytes of a plain file, or none if it cannot be read or is no plain file."""
    try:
        with open_plain(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read(size)
    except (OSError, ValueError):  # a NUL in the path
        return b""
