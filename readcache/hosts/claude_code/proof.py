"""Read the transcript of a call, to find out what the model was sent."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from readcache import Outcome, Reply, Session, Sessions
from readcache.core.model.events import Origin
from readcache.hosts.claude_code.results import names_true_lines
from readcache.hosts.plain_file import open_plain
from readcache.transcripts.claude_code import MOST, Transcript
from readcache.transcripts.tools import bare

Event = Mapping[str, Any]
NEWEST = 2_000_000  # bytes; the end of a transcript, which is read first
NEAR = 100_000  # bytes; an answer's entry is written before the results of its calls
# The model of an answer. It comes after other plain fields, if any. A "<synthetic>" answer has no model.
_MODEL = re.compile(rb'"message":\{(?:"\w+":"[^"\\]*",)*?"model":"([\w.:/@\[\]-]+)"')
PAUSE, SOON, PATIENCE = 0.01, 0.2, 0.6  # seconds; Claude Code writes new entries every 0.1 s, or never
MAY_MOVE = re.compile(r"\b(?:cd|pushd|popd)\b")


class TranscriptProof:
    """The evidence that the transcript gives for the call of one event."""

    def __init__(self, event: Event) -> None:
        self._event = event
        path = event.get("transcript_path") or ""
        if agent := event.get("agent_id"):
            path = os.path.join(path.removesuffix(".jsonl"), "subagents", f"agent-{agent}.jsonl")
        self._path = path

    def of(self, reply: Reply, session: Session) -> bool:
        """Return True if all omitted lines are visible in the sources that the markers name."""
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

    def model(self) -> str:
        """Return the name of the model that made the newest answer, or "" if the end of the transcript has none."""
        return next((name.decode() for name in reversed(_MODEL.findall(tail(self._path, NEAR)))), "")

    def source(self, conversation: str) -> str | None:
        """Return the conversation that this one was forked from, see `Transcript.source`."""
        return Transcript(tail(self._path)).source(conversation)

    def may_have_removed(self, since: float) -> bool:
        """Return True if results may have left the conversation, see `Transcript.may_have_removed`. Wait up to 0.2
        seconds for a request that Claude Code has not written down yet."""
        until = time.monotonic() + SOON
        while (newest := Transcript(tail(self._path))).lacks_request(since) and time.monotonic() < until:
            time.sleep(PAUSE)
        return newest.may_have_removed(since)

    def directory(self) -> str | None:
        """Return the directory in which the command began, or None if it is not known."""
        command = str(self._event["tool_input"].get("command", ""))
        # The event has the directory in which the command ended: the same one, unless the command changes it.
        if not MAY_MOVE.search(command):
            return str(self._event["cwd"])
        found = next(transcripts(self._path, self._event["tool_use_id"]), None)
        return None if found is None else found.call(self._event["tool_use_id"]).get("cwd")

    def confirm_shown(self, session: Session) -> None:
        """Record in the session which texts the model was sent for replies since the last event.

        A reply whose text is not in the transcript yet stays unconfirmed. Call this after `credit_restored`, which
        brings the view up to date.
        """
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
        """Record the files that Claude Code itself showed again after a compaction: the model sees them. Call this
        before any other method that uses the view."""
        visible, call_id = session.view.deliveries, self._event.get("tool_use_id")
        if any(delivery.event.origin is not Origin.RESTORED for delivery in visible):
            return
        newest: Transcript | None = Transcript(tail(self._path))
        if visible and call_id:  # there was a compaction; wait until the transcript has it
            newest = next(transcripts(self._path, call_id), None)
        for name, file in newest.restored_files() if newest is not None else ():
            reply = session.observe_read(file["filePath"], file["content"], start=file["startLine"], call_id=name)
            if reply.outcome is not Outcome.FULL:
                session.settle(reply.call_id, reply.full_text)


def session_of(event: Event, sessions: Sessions) -> Session:
    """Return the session of the event's reader. The session of a forked conversation begins with the view of its
    source. For each marker, a later check proves that the fork's own transcript has those texts too."""
    conversation, agent = event["session_id"], event.get("agent_id")
    session = sessions.get(conversation, agent or "main")
    if not agent and not session.view.calls.number and (source := TranscriptProof(event).source(conversation)):
        sessions.inherit(conversation, source)
    session.use_model(TranscriptProof(event).model())
    return session


def transcripts(path: str, call_id: str) -> Iterator[Transcript]:
    """Yield the transcript once the call is in it: first its newest part (2,000,000 bytes), then the end of it up to
    `MOST` bytes. Yield nothing if the call does not appear in time."""
    until = time.monotonic() + (PATIENCE if os.path.exists(path) else SOON)
    while not (newest := Transcript(tail(path))).call(call_id):
        if time.monotonic() > until:
            return
        time.sleep(PAUSE)
    yield newest
    if os.path.getsize(path) > NEWEST:
        yield Transcript(tail(path, MOST))


def tail(path: str, size: int = NEWEST) -> bytes:
    """Return the last `size` bytes of a plain file. Empty if it cannot be read or is not a plain file."""
    try:
        with open_plain(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read(size)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return b""
