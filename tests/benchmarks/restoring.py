"""How much of what an agent reads again after a compaction a restored section would have held.

    python tests/benchmarks/restoring.py --data DIR [--short] [--check]

Every recorded session is replayed and compacted whenever 112,000 characters of output (28,000 tokens) came together;
the last two calls stay. What counts is, of the characters of lines that were shown before, left the conversation and
are read again within the next 20 calls, the share that stood in the rendered section. Beside the plan stand two simple
policies within the same budget: the five files read last from their first known line on, as harnesses do, and the
ranges read last, of any number of files and without titles.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from unittest.mock import patch

from measuring import Record, Table, main, sessions, tell

from readcache import Budget, Mode, Policy, Session
from readcache.model.events import Compacted, Delivered, Event, Origin
from readcache.model.text import bodies, split_lines
from readcache.model.view import View
from readcache.policy import count_by_chars
from readcache.restore import choose as restore_plan
from readcache.restore.evidence import FileEvidence, gather
from readcache.restore.rank import LAST_LINE
from readcache.restore.refuse import why_not_name

TRIGGER = 112_000  # characters
AFTER = 20  # calls
KEPT = 2  # calls
TRIVIAL = 4  # characters: shorter lines stand anywhere
BUDGETS = (2_000, 5_000, 10_000, 20_000, 50_000)
BUDGET = 10_000
Line = tuple[str, str]  # the file's path, the text
Read = list[tuple[str, list[tuple[int, str]]]]  # for each file of a call's result: (number or 0, text)
Change = Callable[[FileEvidence], FileEvidence]
Way = Callable[["Moment", Budget], set[Line]]

ABLATIONS: dict[str, Change] = {
    "without the calls that named it": lambda e: replace(e, named=0),
    "without lines that were pointed at": lambda e: replace(e, pointed=()),
    "without the number of writes": lambda e: replace(e, writes=0),
    "without recency": lambda e: replace(e, shown=((1, (1, LAST_LINE)),)),
    "without lines from before a write": lambda e: replace(e, outdated=()),
    "recency alone": lambda e: replace(e, named=0, pointed=(), writes=0),
}


@dataclass
class Moment:
    """A compaction: what could be known then, and how many characters of which lines were read again."""

    log: list[Event]
    view: View
    kept: frozenset[str]
    lost: set[Line]
    history: list[Read]
    again: Counter[Line]


def measure(chosen: argparse.Namespace, table: Table) -> None:
    moments = [m for records in sessions(chosen.data, 4 if chosen.short else 1) for m in replay(records)]
    asked = max(1, sum(m.again.total() for m in moments))
    print(f"{len(moments)} compactions, {asked} characters read again; of them held:")

    def share(way: Way, tokens: int = BUDGET) -> float:
        return sum(_held(m, way(m, Budget(5, tokens, 5_000))) for m in moments) / asked

    for tokens in BUDGETS:
        print(f"{tokens:6d} tokens: " + ", ".join(f"{name} {share(way, tokens):.1%}" for name, way in WAYS.items()))
    plan = share(planned)
    print(f"lines of this epoch alone: {100 * (share(epoch) - plan):+.1f} points")
    for name, change in ABLATIONS.items():
        print(f"{name}: {100 * (share(partial(planned, change=change)) - plan):+.1f} points")
    for name in ("usual", "newest ranges"):  # recorded sessions only: made-up ones read at random
        table.row(f"{name} by plan", share(WAYS[name]) / max(plan, 1e-9), most=0.9 if chosen.data else None)


# ---------------------------------------------------------------- replay


def replay(records: Sequence[Record]) -> Iterator[Moment]:
    """The compactions of one session, each once the calls after it are known."""
    session = Session("/", policy=Policy(mode=Mode.ADVISE))  # all bytes are shown, and known to be lines of files
    log: list[Event] = []
    history: list[tuple[str, Read]] = []
    chars, left, moment = 0, 0, None
    for record in records:
        if record["tool"] == "_compact":
            continue
        if chars > TRIGGER:
            if moment is not None:
                yield moment
            moment = _moment(list(log), history)
            session.compacted(keep=moment.kept)
            log.append(Compacted(moment.kept))
            chars, left = 0, AFTER
        tell(session, record)
        new = [r.event for r in session.events()[len(log) :]]
        log += new
        read = [read for event in new if isinstance(event, Delivered) for read in _lines_read(event)]
        call_id = next((event.call_id for event in new if isinstance(event, Delivered)), "")
        if moment is not None and left:
            left -= 1
            lines = [(path, text) for path, rows in read for _, text in rows]
            moment.again.update({line: len(line[1]) + 1 for line in lines if line in moment.lost})
            moment.lost.difference_update(lines)
        history.append((call_id, read))
        chars += len(record["output"])
    if moment is not None:
        yield moment


def _moment(log: list[Event], history: Sequence[tuple[str, Read]]) -> Moment:
    kept = frozenset(call_id for call_id, _ in history[-KEPT:])
    view = View()
    for event in log:
        view.apply(event)
    shown = {(path, text) for _, read in history for path, rows in read for _, text in rows}
    staying = {(path, text) for _, read in history[-KEPT:] for path, rows in read for _, text in rows}
    lost = {line for line in shown - staying if len(line[1].strip()) >= TRIVIAL}
    return Moment(log, view, kept, lost, [read for _, read in history], Counter())


def _lines_read(event: Delivered) -> Read:
    """The file lines in a result."""
    if event.origin is not Origin.RESULT:
        return []
    lines = split_lines(event.text)
    return [
        (piece.keys[0], list(enumerate(bodies(lines[piece.at : piece.at + piece.count], piece.sep), piece.first)))
        for piece in event.pieces
    ]


# ---------------------------------------------------------------- policies


def planned(moment: Moment, budget: Budget, change: Change = lambda evidence: evidence) -> set[Line]:
    """What this package's plan holds; `change` takes something away from what it knows."""
    changed = [change(evidence) for evidence in gather(moment.log)]
    with patch.object(restore_plan, "gather", lambda _: changed):
        plan = restore_plan.plan_restore(
            moment.view,
            moment.kept,
            budget,
            moment.log,
            count_tokens=count_by_chars,
            refuses=lambda paths: {path: why for path in paths if (why := why_not_name(path))},
            current=None,
        )
    assert count_by_chars(plan.render()) <= budget.max_tokens
    return {(item.path, text) for item in plan.items for text in item.text.split("\n")}


def epoch(moment: Moment, budget: Budget) -> set[Line]:
    """The plan without what earlier compactions took."""
    at = max((n for n, event in enumerate(moment.log) if isinstance(event, Compacted)), default=0)
    return planned(replace(moment, log=moment.log[at:]), budget)


def any_number(moment: Moment, budget: Budget) -> set[Line]:
    """The plan without limits for files, as the newest ranges have none."""
    return planned(moment, Budget(len(moment.log), budget.max_tokens, budget.max_tokens))


def usual(moment: Moment, budget: Budget) -> set[Line]:
    """The files read last, each from its first known line on."""
    known: dict[str, dict[int, str]] = {}
    for path, rows in _in_order(moment):
        known[path] = {**known.pop(path, {}), **dict(rows)}
    out: set[Line] = set()
    total = 0
    for path in list(known)[: -budget.max_files - 1 : -1]:
        used = 0
        for _, text in sorted(known[path].items()):
            used += len(text) + 1
            total += len(text) + 1
            if used > 4 * budget.max_tokens_per_file or total > 4 * budget.max_tokens:
                break
            out.add((path, text))
    return out


def newest(moment: Moment, budget: Budget) -> set[Line]:
    """The ranges read last, no line twice."""
    out: set[Line] = set()
    total = 0
    for path, rows in reversed(list(_in_order(moment))):
        for _, text in rows:
            if (path, text) not in out and total + len(text) < 4 * budget.max_tokens:
                out.add((path, text))
                total += len(text) + 1
    return out


def _in_order(moment: Moment) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    return (part for read in moment.history for part in read)


def _held(moment: Moment, lines: set[Line]) -> int:
    return sum(chars for line, chars in moment.again.items() if line in lines)


WAYS: dict[str, Way] = {"plan": planned, "plan of any files": any_number, "usual": usual, "newest ranges": newest}

if __name__ == "__main__":
    main(__doc__, measure)
