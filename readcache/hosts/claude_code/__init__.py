"""Claude Code: its hooks tell of each result, and its transcript says what the model was sent.

A result is judged after the tool ran (`PostToolUse`), and Claude Code is given it in the tool's own schema with markers
in it. Each marker is proven first: its lines must stand in the transcript, in the very request that the model answered
with this call. Whatever is not proven, or fails, is left as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from readcache.hosts.claude_code.settings import changes, former_files, in_force
from readcache.hosts.host import Host
from readcache.transcripts.claude_code_entries import bare
from readcache.transcripts.claude_code_requests import Transcript, tail, transcripts

if TYPE_CHECKING:
    from readcache import Reply, Session, Sessions

Event = Mapping[str, Any]
_MAY_MOVE = re.compile(r"\b(?:cd|pushd|popd)\b")


def claude_hook(event: Event, sessions: Sessions) -> dict[str, Any] | None:
    """The answer to one event of Claude Code's hooks; None: nothing is to be changed."""
    name = event.get("hook_event_name")
    if name in ("PostToolUse", "PostToolUseFailure"):
        return _after_tool(event, sessions)
    if name == "PostToolBatch":
        _after_batch(event, _session(event, sessions))
    elif name == "PostCompact" or (name == "SessionStart" and event.get("source") == "compact"):
        _session(event, sessions).compacted()
    elif name == "SessionEnd":
        sessions.close(event["session_id"])
    return None


def _session(event: Event, sessions: Sessions) -> Session:
    """A sub-agent has a conversation of its own."""
    return sessions.get(event["session_id"], event.get("agent_id") or "main")


def _after_tool(event: Event, sessions: Sessions) -> dict[str, Any] | None:
    from readcache import Outcome
    from readcache.hosts.claude_code.results import judged

    session, proof = _session(event, sessions), _Proof(event)
    if not session.view.deliveries:
        proof.credit_restored(session)
    result = judged(event, session, proof.directory())
    if result is None:
        return None
    for _ in range(2):  # the second time is a repeat, which is shown
        reply = result.answer()
        if reply.outcome is Outcome.FULL:
            return None
        if proof.of(reply, session):
            output = {"hookEventName": event["hook_event_name"], "updatedToolOutput": result.put(reply)}
            return {"hookSpecificOutput": output}
    session.settle(reply.call_id, reply.full_text)
    return None


def _after_batch(event: Event, session: Session) -> None:
    """The texts that the model gets: after other hooks, the host's own cuts, and with its line numbers."""
    from readcache import UsageError
    from readcache.hosts.claude_code.results import text_of_response

    for call in event["tool_calls"]:
        try:
            session.settle(call["tool_use_id"], text_of_response(call["tool_response"]))
        except UsageError:  # a tool of which nothing is known
            continue


class _Proof:
    """What the transcript says of one event's call."""

    def __init__(self, event: Event) -> None:
        self._event = event
        path = event.get("transcript_path") or ""
        if agent := event.get("agent_id"):
            path = os.path.join(path.removesuffix(".jsonl"), "subagents", f"agent-{agent}.jsonl")
        self._path = path

    def of(self, reply: Reply, session: Session) -> bool:
        """True if all that is left out is visible, and of the lines that the marker says."""
        from readcache.hosts.claude_code.results import is_on_disk

        gone = [(omitted, lines) for omitted, _, lines in reply.omissions()]
        if self._event["tool_name"] == "Bash" and not all(is_on_disk(session, *each) for each in gone):
            return False
        wanted = [({bare(line) for line in lines}, omitted.sources) for omitted, lines in gone]
        return any(
            all(
                lines <= set().union(*(part.lines_of(source, reply.call_id) for source in sources))
                for lines, sources in wanted
            )
            for part in transcripts(self._path, reply.call_id)
        )

    def directory(self) -> str | None:
        """Where the command began. The event has where it ended. None when it is not known."""
        command = str(self._event["tool_input"].get("command", ""))
        if not _MAY_MOVE.search(command):
            return str(self._event["cwd"])
        found = next(transcripts(self._path, self._event["tool_use_id"]), None)
        return None if found is None else found.call(self._event["tool_use_id"]).get("cwd")

    def credit_restored(self, session: Session) -> None:
        """The model sees what Claude Code read again by itself after a compaction."""
        for name, file in Transcript(tail(self._path)).restored_files():
            session.observe_read(file["filePath"], file["content"], start=file["startLine"], call_id=name)


WHY = "its transcript tells what the model still sees"
HOST = Host("claude-code", "on", WHY, changes, claude_hook, in_force=in_force, former_files=former_files)
