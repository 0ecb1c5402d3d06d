"""Recorded sessions with the real `Compactor` in them and a summariser from a script: does every list stay well formed,
is every marker true, and how much shorter do the conversations become?

    python tests/benchmarks/compacting.py [--data DIR] [--short] [--check]

Each session is an agent's conversation in the shape of OpenAI's API, of Anthropic's, and without ids (mini-swe-agent).
Before each step `maybe_compact` is called with a trigger of 28,000 tokens, CooperBench's. After each compaction:

- every call has its result after it and every result its call, and Anthropic's roles alternate;
- what counts as visible stands in the messages, line by line;
- the lines that a marker stands for, known from the real output, stand where the marker says.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from measuring import Record, Table, main, sessions

from readcache import Policy, Reply, Session
from readcache.context import Compactor, How
from readcache.core.messages.messages import Kind, normalise
from readcache.core.model.events import Delivered
from readcache.core.model.text import bodies, find_separator, split_lines

TRIGGER = 28_000
SHAPES = ("openai", "anthropic", "no ids")
Messages = list[Mapping[str, Any]]


def measure(chosen: argparse.Namespace, table: Table) -> None:
    every = 40 if chosen.short else 1
    for shape in SHAPES:
        counts: Counter[str] = Counter()
        before: list[int] = []
        after: list[int] = []
        for records in sessions(chosen.data, every):
            for how, old, new in Replay(shape, counts).run(records):
                counts[how.value] += 1
                before.append(old)
                after.append(new)
        kinds = ", ".join(f"{counts[how.value]} {how.value}" for how in How if counts[how.value])
        tokens = (
            f"median {statistics.median(before or [0]):,.0f} -> {statistics.median(after or [0]):,.0f} tokens; {kinds}"
        )
        table.row(f"{shape}: of a conversation left", sum(after) / max(1, sum(before)), tokens)
        for fault in ("ill-formed", "not there", "untrue"):
            table.row(f"{shape}: {fault}", counts[fault], f"of {counts['markers']} markers", most=0, unit="")


class Replay:
    """One recorded session as a conversation."""

    def __init__(self, shape: str, counts: Counter[str]) -> None:
        self.shape = shape
        self.counts = counts
        self.session = Session("/", policy=Policy(delta=True, any_output=True))  # as many markers as there can be
        self.compactor = Compactor(self.session, self.summarize, trigger_tokens=TRIGGER)
        self.replies: dict[str, Reply] = {}
        self.asked = 0

    def summarize(self, _request: object) -> str:
        """Every fourth time the model is down."""
        self.asked += 1
        if self.asked % 4 == 0:
            raise RuntimeError("overloaded")
        return f"<analysis>hm</analysis><summary>TASK: summary {self.asked}\nNEXT STEP: go on</summary>"

    def run(self, records: Sequence[Record]) -> Iterator[tuple[How, int, int]]:
        """What each compaction did, and the tokens before and after."""
        messages: Messages = [{"role": "user", "content": "fix it"}]
        if self.shape != "anthropic":
            messages.insert(0, {"role": "system", "content": "you are an agent"})
        for n, record in enumerate(records):
            if record["tool"] == "_compact":
                continue
            messages = [*messages, *self.step(f"c{n}", record)]
            shorter = self.compactor.maybe_compact(messages)
            if shorter is not messages:
                messages = shorter
                self.check(messages)
                report = self.compactor.report
                yield report.how, report.tokens_before, report.tokens_after

    def step(self, call_id: str, record: Record) -> Messages:
        """A call and its result."""
        given, output = record["input"], record["output"]
        reply = self.reply(None if self.shape == "no ids" else call_id, record)
        if reply is not None:
            self.replies[reply.call_id] = reply
            output = reply.text
        if self.shape == "anthropic":
            call = {"type": "tool_use", "id": call_id, "name": record["tool"], "input": given}
            result = {"type": "tool_result", "tool_use_id": call_id, "content": output}
            return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        if self.shape == "openai":
            function = {"name": record["tool"], "arguments": json.dumps(given)}
            calls = [{"id": call_id, "type": "function", "function": function}]
            return [
                {"role": "assistant", "content": None, "tool_calls": calls},
                {"role": "tool", "tool_call_id": call_id, "content": output},
            ]
        said = f"THOUGHT: so\n\n```bash\n{given.get('command') or json.dumps(given)}\n```"
        shown = f"<returncode>0</returncode>\n<output>\n{output}\n</output>"
        return [{"role": "assistant", "content": said}, {"role": "user", "content": shown}]

    def reply(self, call_id: str | None, record: Record) -> Reply | None:
        """The session's reply, where the record is a command or a read."""
        given, output = record["input"], record["output"]
        if record["tool"] == "bash" and isinstance(given.get("command"), str):
            return self.session.observe(given["command"], output, cwd=record["cwd"] or "/testbed", call_id=call_id)
        if record["tool"] == "read" and given.get("path"):
            return self.session.observe_read(str(given["path"]), output, numbered=True, call_id=call_id)
        if record["tool"] in ("edit", "write", "patch") and given.get("path"):
            self.session.wrote(str(given["path"]), content=given.get("content"), call_id=call_id)
        return None

    def check(self, messages: Messages) -> None:
        """Counts what is wrong with the list, and with what the session believes of it."""
        self.counts["ill-formed"] += not is_well_formed(messages)
        if self.shape == "anthropic":
            self.counts["ill-formed"] += any(a["role"] == b["role"] for a, b in pairwise(messages))
        lines = {line for message in normalise(messages) for part in message.parts for line in part.text.split("\n")}
        lines.add("")
        deliveries = {delivery.event.call_id: delivery.event for delivery in self.session.view.deliveries}
        for event in deliveries.values():
            self.counts["not there"] += not lines.issuperset(event.text.split("\n"))
            for logged in event.markers:
                if not logged.sources:  # retired: the marker itself says that the lines are gone
                    continue
                self.counts["markers"] += 1
                sources = [deliveries[source].text for source in logged.sources if source in deliveries]
                meant = omitted_lines(self.replies[event.call_id], logged.path, logged.start, logged.end)
                self.counts["untrue"] += len(sources) < len(logged.sources) or not bare(sources).issuperset(meant)
        written = {
            marker
            for line in lines
            for marker in self.session.markers_in(line)
            if not marker.startswith(("[GONE ", "[PRUNED "))
        }
        known = {line for event in deliveries.values() for line in pointing_lines(event)}
        self.counts["untrue"] += len(written - known)


def is_well_formed(messages: Messages) -> bool:
    """Has every call one result after it, and every result a call?"""
    waiting: list[str | None] = []
    for message in normalise(messages):
        for part in message.parts:
            if part.kind is Kind.CALL:
                waiting.append(part.call_id)
            elif part.kind is Kind.RESULT:
                if part.call_id not in waiting:
                    return False
                waiting.remove(part.call_id)
    return not waiting


def pointing_lines(event: Delivered) -> list[str]:
    """The lines of a delivery that are markers."""
    lines = event.text.split("\n")
    return [lines[logged.line] for logged in event.markers if logged.line >= 0]


def omitted_lines(reply: Reply, path: str | None, start: int, end: int) -> set[str]:
    """The lines of the real output that one omission left out, without numbers in front."""
    whole = split_lines(reply.full_text)
    for omitted, _, lines in reply.omissions():
        if (omitted.path, omitted.start, omitted.end) == (path, start, end):
            return set(bodies(lines, find_separator(whole)))
    raise LookupError(f"no omission of lines {start}-{end} of {path}")


def bare(texts: Sequence[str]) -> set[str]:
    """The lines of these texts, with and without the numbers in front of them."""
    found: set[str] = set()
    for text in texts:
        lines = split_lines(text)
        found.update(lines)
        for sep in ("\t", "→", ":", ": "):
            found.update(bodies(lines, sep))
    return found


if __name__ == "__main__":
    main(__doc__, measure)
