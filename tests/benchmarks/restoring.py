"""How much of what an agent reads again after a compaction a restored section would have held.

    python tests/benchmarks/restoring.py --data DIR [--short] [--check]

Every recorded session is replayed and compacted whenever 112,000 characters of output (28,000 tokens) came together;
the last two calls stay. What counts is, of the characters of lines that were shown before, left the conversation and
are read again within the next 20 calls, the share that stood in the rendered section: of all characters, in the mean of
the sessions, and in that of the compactions, as a few long sessions hold nearly all characters. Beside the plan stand
two simple policies within the same budget: the five files read last from their first known line on, as harnesses do,
and the ranges read last, of any number of files and without titles.

The second table is of what the agent's next 20 commands name, files and symbols that the conversation had shown before:
the share that the FILE MAP of a summary holds, that the restored section holds, and both.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import mean

from measuring import Record, Table, main, sessions, tell

from readcache import Budget, Mode, Policy, Session
from readcache.context.file_map import file_map
from readcache.core.model.events import Compacted, Delivered, Event, Origin
from readcache.core.model.text import bodies, split_lines
from readcache.core.model.tokens import count_by_chars
from readcache.core.model.view import View
from readcache.core.restore.choose import plan_restore
from readcache.core.restore.evidence import Input
from readcache.core.restore.fit import why_not_name
from readcache.core.restore.plan import RestorePlan

TRIGGER = 112_000  # characters
AFTER = 20  # calls
KEPT = 2  # calls
TRIVIAL = 4  # characters: shorter lines stand anywhere
FEWEST = 500  # characters read again, for a compaction or a session to count in the means
USUAL_FILES = 5
BUDGETS = (2_000, 5_000, 10_000, 20_000, 50_000)
BUDGET = 10_000
FILES = (5, 8, 10, 15, 20, 30, 50)
FILE_NAME = re.compile(r"(?<![\w.-])[\w-][\w.-]*\.[A-Za-z]\w{0,5}(?![\w.-])")  # the last part of a path
SYMBOL = re.compile(r"\b(?=\w*[a-z]\w*(?:_|[A-Z]))[A-Za-z_]\w{4,}\b")  # snake_case, camelCase
Line = tuple[str, str]  # the file's path, the text
Read = list[tuple[str, list[tuple[int, str]]]]  # for each file of a call's result: (number or 0, text)
Way = Callable[["Moment", Budget], set[Line]]
Means = tuple[float, float, float]  # of the characters, of the sessions, of the compactions


@dataclass
class Moment:
    """A compaction: what could be known then, what was read again (characters of lines), and what was named."""

    session: int
    log: list[Event]
    view: View
    kept: frozenset[str]
    inputs: list[Input]
    lost: set[Line]
    history: list[Read]
    file_map: str
    words: frozenset[str]  # that the conversation held
    again: Counter[Line] = field(default_factory=Counter)
    commands: list[str] = field(default_factory=list)


def measure(chosen: argparse.Namespace, table: Table) -> None:
    every = 4 if chosen.short else 1
    moments = [m for n, records in enumerate(sessions(chosen.data, every)) for m in replay(n, records)]
    print(f"{len(moments)} compactions, {sum(m.again.total() for m in moments)} characters read again; of them held:")

    def recovered(way: Way, tokens: int = BUDGET, files: int = Budget().max_files) -> Means:
        return _means(moments, [way(m, Budget(files, tokens, 5_000)) for m in moments])

    for tokens in BUDGETS:
        print(
            f"{tokens:6d} tokens: " + ", ".join(f"{name} {told(recovered(way, tokens))}" for name, way in WAYS.items())
        )
    print("plan by files: " + ", ".join(f"{files}: {told(recovered(planned, files=files))}" for files in FILES))
    plan = recovered(planned)
    print_named(moments)
    for name in ("usual", "newest ranges"):  # recorded sessions only: made-up ones read at random
        table.row(f"{name} by plan", recovered(WAYS[name])[0] / max(plan[0], 1e-9), most=0.9 if chosen.data else None)


def told(means: Means) -> str:
    return "/".join(f"{share:.1%}".rstrip("%") for share in means)


def _means(moments: Sequence[Moment], sections: Sequence[set[Line]]) -> Means:
    """The share of what was read again that the sections hold."""
    shares: list[float] = []
    of_session: dict[int, list[int]] = {}
    for moment, lines in zip(moments, sections, strict=True):
        asked, got = moment.again.total(), sum(n for line, n in moment.again.items() if line in lines)
        shares += [got / asked] if asked >= FEWEST else []
        sums = of_session.setdefault(moment.session, [0, 0])
        sums[0], sums[1] = sums[0] + got, sums[1] + asked
    all_got, all_asked = (sum(sums[k] for sums in of_session.values()) for k in (0, 1))
    sessions = [got / asked for got, asked in of_session.values() if asked >= FEWEST]
    return all_got / max(1, all_asked), mean(sessions or [0]), mean(shares or [0])


# ---------------------------------------------------------------- what is named next


def print_named(moments: Sequence[Moment]) -> None:
    """Of the files and symbols that the next commands name, those that the compacted conversation holds."""
    for what, pattern in (("files", FILE_NAME), ("symbols", SYMBOL)):
        shares: dict[str, list[float]] = {}
        for moment in moments:
            named = {name for text in moment.commands for name in pattern.findall(text)} & moment.words
            if not named:
                continue
            section = plan_of(moment, Budget(max_tokens=BUDGET)).render()
            texts = {"FILE MAP": moment.file_map, "section": section, "both": moment.file_map + "\n" + section}
            for name, text in texts.items():
                shares.setdefault(name, []).append(len(named & set(pattern.findall(text))) / len(named))
        print(f"{what} named next, held by " + ", ".join(f"{name} {mean(each):.1%}" for name, each in shares.items()))


# ---------------------------------------------------------------- replay


def replay(number: int, records: Sequence[Record]) -> Iterator[Moment]:
    """The compactions of one session, each once the calls after it are known."""
    session = Session("/", policy=Policy(mode=Mode.ADVISE))  # all bytes are shown, and known to be lines of files
    log: list[Event] = []
    history: list[tuple[str, Read]] = []
    inputs: list[Input] = []
    words: set[str] = set()
    chars, left, moment = 0, 0, None
    for record in records:
        if record["tool"] == "_compact":
            continue
        if chars > TRIGGER:
            if moment is not None:
                yield moment
            moment = _moment(number, session, list(log), history, list(inputs), frozenset(words))
            session.compacted(keep=moment.kept)
            log.append(Compacted(moment.kept))
            chars, left = 0, AFTER
        tell(session, record)
        new = [r.event for r in session.events()[len(log) :]]
        log += new
        read = [read for event in new if isinstance(event, Delivered) for read in _lines_read(event)]
        call_id = next((getattr(event, "call_id", "") for event in new), "")
        said = json.dumps(record["input"], ensure_ascii=False)
        inputs.append((call_id, "\n".join(str(value) for value in record["input"].values())))
        for pattern in (FILE_NAME, SYMBOL):
            words.update(pattern.findall(said), pattern.findall(record["output"]))
        if moment is not None and left:
            left -= 1
            moment.commands.append(inputs[-1][1] if record["tool"] == "bash" else "")
            lines = [(path, text) for path, rows in read for _, text in rows]
            moment.again.update({line: len(line[1]) + 1 for line in lines if line in moment.lost})
            moment.lost.difference_update(lines)
        history.append((call_id, read))
        chars += len(record["output"])
    if moment is not None:
        yield moment


def _moment(
    number: int,
    session: Session,
    log: list[Event],
    history: Sequence[tuple[str, Read]],
    inputs: list[Input],
    words: frozenset[str],
) -> Moment:
    kept = frozenset(call_id for call_id, _ in history[-KEPT:])
    view = View()
    for event in log:
        view.apply(event)
    shown = {(path, text) for _, read in history for path, rows in read for _, text in rows}
    staying = {(path, text) for _, read in history[-KEPT:] for path, rows in read for _, text in rows}
    lost = {line for line in shown - staying if len(line[1].strip()) >= TRIVIAL}
    files = "\n".join(file_map(session.events(), session.agent_id, session.root))
    return Moment(number, log, view, kept, inputs, lost, [read for _, read in history], files, words)


def _lines_read(event: Delivered) -> Read:
    """The file lines in a result."""
    if event.origin is not Origin.RESULT:
        return []
    lines = split_lines(event.text)
    return [
        (mapped.keys[0], list(enumerate(bodies(lines[mapped.at : mapped.at + mapped.count], mapped.sep), mapped.first)))
        for mapped in event.source_map
    ]


# ---------------------------------------------------------------- policies


def plan_of(moment: Moment, budget: Budget, inputs: Sequence[Input] = ()) -> RestorePlan:
    """This package's plan."""
    plan = plan_restore(
        moment.view,
        moment.kept,
        budget,
        moment.log,
        inputs=inputs,
        count_tokens=count_by_chars,
        refuses=lambda paths: {path: why for path in paths if (why := why_not_name(path))},
        current=None,
    )
    assert count_by_chars(plan.render()) <= budget.max_tokens
    return plan


def _lines(plan: RestorePlan) -> set[Line]:
    return {(item.path, text) for item in plan.items if item.path is not None for text in item.text.split("\n")}


def planned(moment: Moment, budget: Budget) -> set[Line]:
    """What the plan holds that knows of reads, writes and commands."""
    return _lines(plan_of(moment, budget))


def told_of_all(moment: Moment, budget: Budget) -> set[Line]:
    """What the plan holds where the message list tells of the calls of other tools."""
    return _lines(plan_of(moment, budget, moment.inputs))


def usual(moment: Moment, budget: Budget) -> set[Line]:
    """The files read last, each from its first known line on."""
    known: dict[str, dict[int, str]] = {}
    for path, rows in _in_order(moment):
        known[path] = {**known.pop(path, {}), **dict(rows)}
    out: set[Line] = set()
    total = 0
    for path in list(known)[: -USUAL_FILES - 1 : -1]:
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


WAYS: dict[str, Way] = {"plan": planned, "plan, all tools": told_of_all, "usual": usual, "newest ranges": newest}

if __name__ == "__main__":
    main(__doc__, measure)
