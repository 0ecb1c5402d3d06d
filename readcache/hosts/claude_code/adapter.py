"""Claude Code: its hooks report each result, and its transcript shows what the model was sent.

A result is judged after the tool ran (`PostToolUse`). Claude Code gets it back in the tool's own schema, with markers
in it. Each marker is proven first: its lines must be in the transcript, in the request that the model answered with
this call. An unproven result, or one that readcache fails on, is not changed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from readcache.hosts.claude_code.settings import changes, former_files, in_force, too_old, why_hooks
from readcache.hosts.host import Host, Json, Scripted, stream

if TYPE_CHECKING:
    from readcache import Reply, Session, Sessions

Event = Mapping[str, Any]
PLUGIN_EVENTS = ("Begin", "Forked", "ToolResult", "Compacted", "Told")  # only the plugin sends these
_MOST_OWN = 5


def claude_hook(
    event: Event, sessions: Sessions, told: Callable[[Reply], object] = lambda _: None
) -> dict[str, Any] | None:
    """Return the answer to one event of Claude Code's hooks or of the plugin, or None to change nothing. `told` is
    called with each Reply that a hook gives."""
    name = event.get("hook_event_name")
    if name in ("PostToolUse", "PostToolUseFailure"):
        return _after_tool(event, sessions, told)
    if name == "SessionStart" and event.get("source") == "compact":
        return _after_compaction(event, sessions)
    if name in PLUGIN_EVENTS:
        from readcache.hosts.claude_code.plugin import answer_plugin

        return answer_plugin(event, sessions, _own_files)
    return None


def _after_tool(event: Event, sessions: Sessions, told: Callable[[Reply], object]) -> dict[str, Any] | None:
    from readcache.hosts.claude_code.proof import TranscriptProof, session_of
    from readcache.hosts.claude_code.results import judged, proven_reply

    session, proof = session_of(event, sessions), TranscriptProof(event)
    proof.credit_restored(session)
    proof.confirm_shown(session)
    result = judged(event, session, proof.directory())
    reply = proven_reply(result.call, lambda reply: proof.of(reply, session), session, told) if result else None
    if result is None or reply is None:
        return None
    output = {"hookEventName": event["hook_event_name"], "updatedToolOutput": result.put(reply)}
    return {"hookSpecificOutput": output}


def _after_compaction(event: Event, sessions: Sessions) -> dict[str, Any] | None:
    from readcache.hosts.claude_code.proof import TranscriptProof, session_of
    from readcache.hosts.restored import answer_compaction

    session, proof = session_of(event, sessions), TranscriptProof(event)
    proof.credit_restored(session)  # files that Claude Code restored after the previous compaction
    proof.confirm_shown(session)
    return answer_compaction(session, without=_own_files(session))


def _own_files(session: Session) -> list[str]:
    """Return the paths of the files that Claude Code restores by itself: the five modified last, out of the files that
    were the only file of a visible result, with known lines."""
    modified = dict[str, int]()
    for source_map in (delivery.event.source_map for delivery in session.view.deliveries):
        paths = {path for mapped in source_map for path in mapped.keys}
        if len(paths) == 1 and all(mapped.first for mapped in source_map):
            with contextlib.suppress(OSError):
                path = paths.pop()
                modified[path] = os.stat(path).st_mtime_ns
    return sorted(modified, key=modified.__getitem__)[-_MOST_OWN:]


WHY = "its conversation or transcript tells what the model still sees"


# ---------------------------------------------------------------- doctor --fire: the Messages API


_QUIET = dict.fromkeys(("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY"), "1")


def _answer(_: str, number: int, command: str) -> str:
    block: Json = {"type": "text", "text": "done"}
    if command:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": command}}
    usage = {"input_tokens": 100, "output_tokens": 10}
    message: Json = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "usage": usage}
    message |= {"stop_reason": "tool_use" if command else "end_turn", "stop_sequence": None, "content": [block]}
    return stream(_events(message, block))


def _events(message: Json, block: Json) -> Iterator[Json]:
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block.get("text")}
    if "input" in block:
        empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": message["stop_reason"]}, "usage": message["usage"]}
    yield {"type": "message_stop"}


SCRIPTED = Scripted(
    ("claude", "-p", "go on", "--allowedTools", "Bash(cat:*)"),
    lambda url: {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "READCACHE_SERVER": "on", **_QUIET},
    lambda _: {},
    '"tool_result"',
    _answer,
    seconds=2.0,  # for the plugin to start its server, and for Claude Code to record each request
)


HOST = Host(
    "claude-code",
    "on",
    WHY,
    changes,
    claude_hook,
    in_force=in_force,
    only_advises=too_old,
    former_files=former_files,
    todo=lambda _: "start Claude Code anew: it loads its plugins and hooks when it starts",
    second_best=lambda target: f"hooks instead of a plugin: {why}" if (why := why_hooks(target)) else "",
    scripted=SCRIPTED,
)
