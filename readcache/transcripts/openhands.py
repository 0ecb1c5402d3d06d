"""OpenHands: events in a list, one a line, in the `history` of an evaluation's output, or one a file in a directory.

Version 0 has `action` and `observation`. The SDK of version 1 has `kind`. The shell is persistent: a command starts in
the directory where the one before it ended, and the previous result names that directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from readcache.transcripts.chats import usage_of
from readcache.transcripts.records import Content, Form, Recording, Turns
from readcache.transcripts.values import block_text, int_in, list_in, object_in

Event = Mapping[str, Any]
TRUNCATED = "<response clipped>"  # in output that the terminal tool or the editor tool truncated
_CONTROLS = re.compile(r"\x1b\[\?2004[lh]\r?\n?")  # control sequences of the terminal
_CALLS = ("run", "read", "write", "edit", "run_ipython", "browse", "browse_interactive", "call_tool_mcp", "mcp")
_NAMES = {"run": "bash", "run_ipython": "ipython"}
_RESULTS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")
# Arguments that OpenHands adds; the agent did not give them.
_NOISE = frozenset(("thought", "hidden", "is_input", "blocking", "confirmation_state", "security_risk", "kind"))


def is_openhands(row: Mapping[str, Any]) -> bool:
    """Return True for an event, or for an evaluation's output."""
    history = list_in(row.get("history"))
    if history:
        first = history[0][0] if isinstance(history[0], list) and history[0] else history[0]
        return is_openhands(object_in(first))
    if str(row.get("kind")).endswith("Event") or row.get("kind") == "Condensation":
        return "source" in row
    return ("action" in row and "args" in row) or ("observation" in row and "extras" in row)


def load_openhands(content: Content) -> Iterator[Recording]:
    """Yield one recording, or one for each line of an evaluation's output."""
    loose = list[Any]()
    for line, row in content.objects():
        if list_in(row.get("history")):
            yield _recording(str(row.get("instance_id") or content.location(line)), list_in(row["history"]))
        elif is_openhands(row):
            loose.append(row)
    if loose:
        yield _recording(content.path, loose)


FORM = Form("openhands", is_openhands, load_openhands)


def _recording(name: str, events: list[Any]) -> Recording:
    log = _EventLog()
    for event in events:
        for one in event if isinstance(event, list) else [event]:  # the oldest format has pairs
            log.take(object_in(one))
    return replace(log.turns.recording(name, "openhands"), first_call="")  # other conversations have the same numbers


class _EventLog:
    def __init__(self) -> None:
        self.turns = Turns()
        self._cwd = "/workspace"
        self._calls: dict[str, str] = {}  # ID of an event -> the call that it belongs to
        self._answers: set[str] = set()
        self._number = 0

    def take(self, event: Event) -> None:
        """Process the next event."""
        self.turns.at(event.get("timestamp"))
        kind = event.get("kind")
        if kind == "ActionEvent":
            name, given = str(event.get("tool_name")), object_in(event.get("action"))
            self._act(event, name, given, str(event.get("tool_call_id")))
        elif kind in _RESULTS:
            self._observe(str(event.get("tool_call_id")), event, object_in(event.get("observation")))
        elif kind == "Condensation" or event.get("action") == "condensation":
            self._condense(object_in(event.get("args")) or event)
        elif event.get("action") in _CALLS:
            metadata = object_in(event.get("tool_call_metadata"))
            self._pay(object_in(metadata.get("model_response")))
            name = _NAMES.get(str(event["action"]), str(event["action"]))
            self._act(event, name, object_in(event.get("args")), f"e{event.get('id', self._number)}")
        elif event.get("observation") is not None and event.get("cause") is not None:
            self._observe(f"e{event['cause']}", event, object_in(event.get("extras")))
        elif event.get("observation") is not None and self.turns.waiting:  # events in pairs have no IDs
            self._observe(self.turns.waiting[0], event, object_in(event.get("extras")))
        elif "message" in event or "llm_message" in event:
            message = object_in(event.get("llm_message")).get("content") or event.get("message")
            self.turns.type(len(block_text(message) or ""))

    def _act(self, event: Event, name: str, given: Event, call: str) -> None:
        given = {key: value for key, value in given.items() if key not in _NOISE and value not in (None, "")}
        if name == "ipython":
            given = {"code": given.get("code", "")}
        self._number += 1
        self._calls[str(event.get("id", self._number))] = call
        self.turns.tool(call, name, given, self._cwd)

    def _observe(self, call: str, event: Event, observation: Event) -> None:
        metadata = object_in(observation.get("metadata"))
        output = block_text(event.get("content") if "content" in event else observation.get("content"))
        output = _CONTROLS.sub("", output if output is not None else str(event.get("error") or ""))
        failed = bool(observation.get("is_error")) or event.get("observation") == "error" or "error" in event
        status = int_in(metadata.get("exit_code") if metadata else observation.get("exit_code"))
        self._calls[str(event.get("id"))] = call
        whole = status != -1 and TRUNCATED not in output
        self.turns.result(call, output, failed=failed, exit_code=status, complete=whole)
        self._cwd = str(metadata.get("working_dir") or self._cwd)

    def _condense(self, observation: Event) -> None:
        gone = {str(name) for name in list_in(observation.get("forgotten_event_ids"))}
        first = int_in(observation.get("forgotten_events_start_id"))
        last = int_in(observation.get("forgotten_events_end_id"))
        if first is not None and last is not None:
            gone |= {str(number) for number in range(first, last + 1)}
        lost = {self._calls[name] for name in gone if name in self._calls}
        self.turns.trim(frozenset(call for call in self._calls.values() if call not in lost))

    def _pay(self, response: Event) -> None:
        """Record the tokens of a model response, once, because several calls may belong to the same response."""
        name = str(response.get("id"))
        if response.get("usage") and name not in self._answers:
            self._answers.add(name)
            self.turns.answer()
            self.turns.by(response.get("model"))
            self.turns.pay(usage_of(object_in(response["usage"])))
