"""Four ways to leave out of tool outputs what an agent was shown before, each told of the same recorded session.

A way is given a session's records and answers each: with what it sends, or None where the call was not put to it. All
are put the same outputs, those of bash and read tools or of all, and a compaction is the end of what they know. Ours is
told of writes, too, as its harness would; the others have no use for that.

headroom's module is read out of its wheel and runs unchanged. By its docstring blocks are a conversation's tool
outputs in order, each matched against earlier ones only; appending never changes an earlier answer, so that an epoch
is given to it at once. The proxy (`ContentRouter._cross_turn_dedup_messages`) calls it with its defaults, three lines
and 40 characters, and with the number of the message as `turn`; so does this. There it runs behind a compression of
each block, which is not part of the comparison, and leaves Copilot's `view` whole, which it may fold here.

The ledger is rebuilt from the text of its documentation (OMNI, "The ledger"), not from its source: a line is known by
its trimmed text; a run of lines all of which were delivered before in this session becomes one marker when it saves
150 bytes over it; an output under 264 bytes never gets that far, nor do structured payloads; one that would be covered
whole needs 1,024 bytes; lines that state a failure never fold; what is recorded is what was delivered. Its project
scope, which folds what *other* sessions were shown, and its filters are left out.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

from measuring import Record, tell

from readcache import Policy, Reply, Session, Shown
from readcache.core.model.events import Delivered, MarkerRecord
from readcache.core.model.text import split_lines

STUB = 120  # characters: about as long as a marker of ours
OUTPUT_FLOOR, RUN_GAIN, WHOLE_FLOOR = 264, 150, 1024  # bytes, OMNI's
OMNI_MARKER = "[OMNI: {} lines already shown, omni retrieve 0000000000000000]"
# Its text names no pattern. Narrow, so as to keep little from folding that the rule folds.
_FAILURE = re.compile(r"\s*(?:[\w.]*(?:Error|Exception)\b:|(?:error|fatal|panic|FAIL(?:ED)?)\b)")
# A harness knows whether its edit tool failed; of a recording, what it printed.
_FAILED_EDIT = re.compile(r"<tool_use_error>|Error|ERROR:|File does not exist|The file .* does not exist")
_POINTER = re.compile(r"\[↑(\d+)L same as msg \d+(?: [+-]\d+L)?: ")


@dataclass(frozen=True)
class Replacement:
    """Lines of an output, counted from 0, that a marker stands for; and the stretches of them that it tells apart."""

    lines: range
    marker: str
    told: tuple[range, ...]


@dataclass(frozen=True)
class Answer:
    """What is sent of one output: so many characters, with these cuts."""

    sent: int
    replacements: tuple[Replacement, ...] = ()


def replacement(lines: range, marker: str) -> Replacement:
    """One whose marker tells of one stretch."""
    return Replacement(lines, marker, (lines,))


Way = Callable[[Sequence[Record]], list[Answer | None]]
Put = Callable[[Record], bool]  # true for the calls that every contestant answers


def bash_and_read(record: Record) -> bool:
    """The tools that every harness has."""
    given = record["input"]
    return bool(
        (record["tool"] == "bash" and isinstance(given.get("command"), str))
        or (record["tool"] == "read" and given.get("path"))
    )


def any_tool(record: Record) -> bool:
    """All calls."""
    return bool(record["tool"] != "_compact")


def epochs(records: Sequence[Record]) -> Iterator[list[int]]:
    """The numbers of the calls between two compactions."""
    for compacted, group in groupby(range(len(records)), lambda n: records[n]["tool"] == "_compact"):
        if not compacted:
            yield list(group)


# ---------------------------------------------------------------- an exact key


def exact_key(put: Put) -> Way:
    """A cache that knows a request by its exact text, or by path and range, and its output by all of its bytes."""

    def way(records: Sequence[Record]) -> list[Answer | None]:
        answers: list[Answer | None] = [None] * len(records)
        for epoch in epochs(records):
            known: dict[str, str] = {}
            for number in (n for n in epoch if put(records[n])):
                output, key = records[number]["output"], _request(records[number])
                is_stub = known.get(key) == output and len(output) > 2 * STUB
                all_of_it = range(len(split_lines(output)))
                answers[number] = Answer(STUB, (replacement(all_of_it, "stub"),)) if is_stub else Answer(len(output))
                known[key] = output
        return answers

    return way


def _request(record: Record) -> str:
    given = record["input"]
    if bash_and_read(record):  # without what models say beside it: a description, a time limit
        given = {name: given.get(name) for name in ("command", "path", "offset", "limit", "view_range")}
    return json.dumps([record["tool"], given])


# ---------------------------------------------------------------- headroom


def headroom(wheel: Path, put: Put) -> Way:
    """`cross_turn_dedup` of this wheel."""
    module = _load(wheel)

    def way(records: Sequence[Record]) -> list[Answer | None]:
        answers: list[Answer | None] = [None] * len(records)
        for epoch in epochs(records):
            numbers = [n for n in epoch if put(records[n])]
            # A call is a message of the assistant's and one with the result.
            blocks = [module.DedupBlock(records[n]["output"], turn=2 * (n - epoch[0]) + 2) for n in numbers]
            folded, stats = module.dedup_blocks(blocks)
            assert "error" not in stats, "cross_turn_dedup gave up; its log says why"
            for number, block in zip(numbers, folded, strict=True):
                answers[number] = unfold(records[number]["output"], block.text)
        return answers

    return way


def _load(wheel: Path) -> Any:
    """The module, without its packages' `__init__`, which import all of headroom and what that needs."""
    for name in ("headroom", "headroom.transforms"):
        package = ModuleType(name)
        package.__path__ = [str(wheel.joinpath(*name.split(".")))]
        sys.modules[name] = package
    return importlib.import_module("headroom.transforms.cross_turn_dedup")


def unfold(output: str, folded: str) -> Answer:
    """Which lines of `output` the pointers in `folded` stand for. A split leaves an empty last line behind the final
    newline, which a fold may take along."""
    before, replacements = output.split("\n"), []
    count, at = len(split_lines(output)), 0
    for line in folded.split("\n"):
        marker = _POINTER.match(line)
        if marker and (at == len(before) or before[at] != line):
            replacements.append(replacement(range(at, min(at + int(marker[1]), count)), line))
            at += int(marker[1])
        else:
            assert before[at] == line, "a line that is neither the output's nor a pointer"
            at += 1
    assert at == len(before)
    return Answer(len(folded), tuple(replacements))


# ---------------------------------------------------------------- a ledger of trimmed lines


def trimmed_lines(put: Put) -> Way:
    """OMNI's rule."""

    def way(records: Sequence[Record]) -> list[Answer | None]:
        answers: list[Answer | None] = [None] * len(records)
        for epoch in epochs(records):
            delivered: set[str] = set()
            for number in (n for n in epoch if put(records[n])):
                answers[number] = _ledger(records[number]["output"], delivered)
        return answers

    return way


def _ledger(output: str, delivered: set[str]) -> Answer:
    size = len(output.encode())
    if size < OUTPUT_FLOOR or _is_structured(output):
        return Answer(len(output))
    lines = split_lines(output)
    seen = [line.strip() in delivered and not _FAILURE.match(line) for line in lines]
    runs = [run for run in _runs(seen) if _saves_enough(lines, run)]
    if runs == [range(len(lines))] and size < WHOLE_FLOOR:
        runs = []
    folded = {at for run in runs for at in run}
    delivered.update(line.strip() for at, line in enumerate(lines) if at not in folded)
    replacements = tuple(replacement(run, OMNI_MARKER.format(len(run))) for run in runs)
    sent = len(output) - sum(len(lines[at]) + 1 for at in folded) + sum(len(each.marker) + 1 for each in replacements)
    return Answer(sent, replacements)


def _runs(seen: Sequence[bool]) -> Iterator[range]:
    for is_seen, run in groupby(range(len(seen)), seen.__getitem__):
        if is_seen:
            indexes = list(run)
            yield range(indexes[0], indexes[-1] + 1)


def _saves_enough(lines: Sequence[str], run: range) -> bool:
    size = sum(len(lines[at].encode()) + 1 for at in run)
    return size - len(OMNI_MARKER.format(len(run))) - 1 >= RUN_GAIN


def _is_structured(output: str) -> bool:
    if not output.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(output)
    except ValueError:
        return False
    return True


# ---------------------------------------------------------------- ours


def readcache(policy: Policy, put: Put) -> Way:
    """A session with this policy."""

    def told(session: Session, record: Record) -> Reply | None:
        is_failed_edit = record["tool"] in ("edit", "write", "patch") and _FAILED_EDIT.match(record["output"])
        reply = None if is_failed_edit else tell(session, record)
        if reply is None and put(record):
            reply = session.observe_tool(record["tool"], record["output"], arguments=record["input"])
        return reply

    def way(records: Sequence[Record]) -> list[Answer | None]:
        session = Session("/", policy=policy)
        replies = [told(session, record) for record in records]
        events = (record.event for record in session.events())
        logged = {event.call_id: event for event in events if isinstance(event, Delivered)}
        return [None if reply is None else account(reply, logged[reply.call_id]) for reply in replies]

    return way


def account(reply: Reply, logged: Delivered) -> Answer:
    """Which lines of the output its omissions are."""
    replacements, at, markers = [], 0, iter(logged.markers)
    for segment in reply.segments:
        if isinstance(segment, Shown):
            at += len(split_lines(segment.text))
        else:
            marker = next(markers)
            taken = range(at, at + segment.end - segment.start + 1)
            replacements.append(Replacement(taken, marker.wording, tuple(_told(marker, at))))
            at = taken.stop
            assert replacements[-1].told[-1].stop == at, "the stands are not all of the omission"
    assert at == len(split_lines(reply.full_text)), "the segments are not all of the output"
    return Answer(len(reply.text), tuple(replacements))


def _told(marker: MarkerRecord, at: int) -> Iterator[range]:
    """The stretches of the lines from `at` on. Where they have numbers, or the marker names those in the file, it says
    of each line where it stands; elsewhere it says which of this output's lines stand in which source."""
    by_number = marker.numbered or " of this output" not in marker.wording
    for _, source_spans in groupby(
        marker.source_spans, lambda span: span if by_number else (span.call_id, span.origin)
    ):
        stop = at + sum(span.count for span in source_spans)
        yield range(at, stop)
        at = stop
