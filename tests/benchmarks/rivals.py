"""What this package and its rivals leave out of the same recorded sessions, and whether the agent could still see it.

    python tests/benchmarks/rivals.py [--data DIR…] [--wheel FILE] [--every N] [--all-tools] [--examples N]
    python tests/benchmarks/rivals.py --data DIR… --wheel FILE --write; python -m tests.docs.generate --write

FILE is headroom's wheel, from `pip download --no-deps 'headroom-ai==0.42.*'`; it is neither installed nor unpacked, and
without it its row is left out. What each contestant is told, and how the rivals run: see contestants.py.

    plain        characters saved, markers paid for, as a share of all tool output; mean: the mean of the sessions
    priced       the same in money: a character is written to a prompt cache once, and read by each later call of its
                 epoch
    cuts         places where a marker stands for lines; calls: those that have one
    break-even   the share of those calls that may each provoke one more turn before the money saved is gone
    never shown  of what was left out: lines that stood nowhere in the conversation, byte for byte
    in front     lines that stood there with another number or path in front of them, or with none
    apart        stretches behind one marker that stood nowhere in one piece
    untold       stretches of those that the marker does not tell apart by the sources that it names

The last three are found from the texts alone that this contestant had left visible: outputs of all tools, and all that
the agent wrote. `--write` keeps the figures in measured-rivals.json, of which the tables in the documents are made.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Any

from contestants import (
    Answer,
    Put,
    Replacement,
    Way,
    any_tool,
    bash_and_read,
    epochs,
    exact_key,
    headroom,
    readcache,
    trimmed_lines,
)
from measuring import Record, Table, sessions
from visible import Conversation, Finding, Line, read_lines

from readcache import Policy, __version__
from readcache.core.model.policy import PRESETS

MEASURED = Path(__file__).with_name("measured-rivals.json")
EXACT, FOLD, LEDGER, ALL = "exact key", "headroom", "trimmed lines", "max, whatever it is worth"
# Prices in characters of uncached input, the same for all. A turn that a marker provokes reads the prompt again, with
# what is carried, and writes an answer.
PRICES = Policy().prices
WRITE, READ, OUTPUT = PRICES.write, PRICES.read, PRICES.output
TURN_PROMPT, TURN_OUTPUT = PRICES.chars_per_token * PRICES.prompt, PRICES.chars_per_token * PRICES.answer
Answers = dict[str, list[Answer | None]]


@dataclass
class Outputs:
    """The outputs of some sessions. Prices are in characters of uncached input."""

    sessions: int = 0
    calls: int = 0
    characters: int = 0
    priced: float = 0


@dataclass
class ReplayTotals:
    """What one contestant did to them."""

    saved: int = 0  # characters
    saved_priced: float = 0
    turns_priced: float = 0  # one more turn for each call with a cut
    replacements: int = 0
    calls: int = 0  # with a cut
    left_out: int = 0  # characters of the lines in cuts
    never: int = 0
    otherwise: int = 0
    apart: int = 0
    untold: int = 0
    shares: list[float] = field(default_factory=list)  # saved of each session's output

    def add(
        self, lines: Sequence[Line], replacement: Replacement, conversation: Conversation, hidden: set[int]
    ) -> Finding:
        """Counts the lines of one cut of an output, and says where they stand."""
        finding = conversation.find(lines[replacement.lines.start : replacement.lines.stop], hidden)
        self.left_out += _size(lines, replacement.lines)
        self.never += finding.never
        self.otherwise += finding.otherwise
        if finding.index is None:
            self.apart += _size(lines, replacement.lines)
            parts = ((part, conversation.find(lines[part.start : part.stop], hidden)) for part in replacement.told)
            self.untold += sum(_size(lines, part) for part, found in parts if found.index is None)
        return finding

    def told(self, outputs: Outputs) -> dict[str, float]:
        """The columns of the table; shares of 1."""
        left_out = max(1, self.left_out)
        return {
            "plain": self.saved / max(1, outputs.characters),
            "mean": mean(self.shares or [0]),
            "priced": self.saved_priced / max(1, outputs.priced),
            "cuts": self.replacements,
            "calls": self.calls,
            "break-even": self.saved_priced / max(1, self.saved_priced + self.turns_priced),
            "never shown": self.never / left_out,
            "in front": self.otherwise / left_out,
            "apart": self.apart / left_out,
            "untold": self.untold / left_out,
        }


def _size(lines: Sequence[Line], part: range) -> int:
    """Characters, with the newlines."""
    return sum(len(lines[at].text) + 1 for at in part)


@dataclass
class Corpus:
    """Sessions, and what came of them."""

    digests: list[str]
    outputs: Outputs = field(default_factory=Outputs)
    totals_by_name: dict[str, ReplayTotals] = field(default_factory=dict)

    def kept(self) -> dict[str, Any]:
        """What measured-rivals.json has of it."""
        facts = {name: value for name, value in vars(self.outputs).items() if name != "priced"}
        rows = {
            name: {column: value if isinstance(value, int) else round(value, 5) for column, value in row.items()}
            for name, row in self.rows().items()
        }
        return {**facts, "sha256": self.digests, "contestants": rows}

    def rows(self) -> dict[str, dict[str, float]]:
        """The table."""
        return {name: totals.told(self.outputs) for name, totals in self.totals_by_name.items()}


def contestants(wheel: Path | None, put: Put) -> dict[str, Way]:
    """By their names in the table."""
    folds = {FOLD: headroom(wheel, put)} if wheel else {}
    ours = {name: readcache(Policy.named(name), put) for name in PRESETS}
    ours[ALL] = readcache(replace(Policy.named("max"), min_worth=0), put)
    return {EXACT: exact_key(put), LEDGER: trimmed_lines(put), **folds, **ours}


def run(corpus: Corpus, recordings: Iterable[list[Record]], ways: dict[str, Way], examples: int = 0) -> None:
    """Puts each session to all contestants; prints one cut in so many."""
    outputs, totals_by_name = corpus.outputs, corpus.totals_by_name
    totals_by_name.update({name: ReplayTotals() for name in ways})
    for records in recordings:
        answers = {name: way(records) for name, way in ways.items()}
        before, saved = outputs.characters, {name: totals.saved for name, totals in totals_by_name.items()}
        for epoch in epochs(records):
            price(records, epoch, answers, corpus)
            judge(records, epoch, answers, corpus, examples)
        outputs.sessions += 1
        for name, totals in totals_by_name.items():
            totals.shares.append((totals.saved - saved[name]) / max(1, outputs.characters - before))


def price(records: Sequence[Record], epoch: Sequence[int], answers: Answers, corpus: Corpus) -> None:
    """What the outputs of an epoch cost while they are carried to its end, and what is saved of that."""
    outputs, carried = corpus.outputs, dict.fromkeys(answers, 0)
    for at, number in enumerate(epoch):
        size, carry = len(records[number]["output"]), WRITE + READ * (len(epoch) - 1 - at)
        outputs.calls += 1
        outputs.characters += size
        outputs.priced += size * carry
        for name, totals in corpus.totals_by_name.items():
            answer = answers[name][number] or Answer(size)
            totals.saved += size - answer.sent
            totals.saved_priced += (size - answer.sent) * carry
            totals.replacements += len(answer.replacements)
            if answer.replacements:
                totals.calls += 1
                totals.turns_priced += READ * (TURN_PROMPT + carried[name]) + OUTPUT * TURN_OUTPUT
            carried[name] += answer.sent


def judge(records: Sequence[Record], epoch: Sequence[int], answers: Answers, corpus: Corpus, examples: int) -> None:
    """Looks for what was left out in what each contestant had left visible."""
    conversation, hidden = Conversation(), {name: set[int]() for name in answers}
    for number in epoch:
        for text in written(records[number]["input"]):
            conversation.add(read_lines(text))
        lines, replacements = read_lines(records[number]["output"]), []
        for name, totals in corpus.totals_by_name.items():
            answer = answers[name][number] or Answer(0)
            for replacement in answer.replacements:
                finding = totals.add(lines, replacement, conversation, hidden[name])
                replacements.append((name, replacement))
                if examples and (totals.left_out + number) % examples == 0:
                    show(name, number, lines, replacement, finding, conversation)
        first = conversation.add(lines)
        for name, replacement in replacements:
            hidden[name].update(first + at for at in replacement.lines)


def written(given: object) -> Iterator[str]:
    """All texts in the input of a call: the agent wrote them."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, (dict, list)):
        for part in given.values() if isinstance(given, dict) else given:
            yield from written(part)


def show(
    name: str,
    number: int,
    lines: Sequence[Line],
    replacement: Replacement,
    finding: Finding,
    conversation: Conversation,
) -> None:
    """A cut, to be looked at by hand: its first lines, beside those in one place where all of them stand."""
    found_at = "nowhere in one piece" if finding.index is None else "in one piece"
    print(f"{name}, call {number}: {replacement.marker}")
    print(
        f"    {_size(lines, replacement.lines)} characters, of which {finding.never} never shown, "
        f"{finding.otherwise} behind something else; {found_at}"
    )
    for at in replacement.lines[:12]:
        print(f"    {lines[at].text[:100]!r}")
        if finding.index is not None:
            print(f"  = {conversation.text(finding.index + at - replacement.lines.start)[:100]!r}")


# ---------------------------------------------------------------- what is printed and kept


def both(corpora: Sequence[Corpus]) -> Corpus:
    """All sessions together."""
    out = Corpus([digest for corpus in corpora for digest in corpus.digests])
    out.outputs = _sum(Outputs, [corpus.outputs for corpus in corpora])
    out.totals_by_name = {
        name: _sum(ReplayTotals, [corpus.totals_by_name[name] for corpus in corpora])
        for name in corpora[0].totals_by_name
    }
    return out


def _sum(kind: type[Any], parts: Sequence[Any]) -> Any:
    """The sum of each field."""
    out = kind()
    for part in parts:
        for name, value in vars(part).items():
            setattr(out, name, getattr(out, name) + value)
    return out


def digest(directory: Path) -> str:
    """That of the recordings, as of `cat *.jsonl.xz | sha256sum`."""
    found = hashlib.sha256()
    for path in sorted(directory.glob("*.jsonl.xz")):
        found.update(path.read_bytes())
    return found.hexdigest()


def tell(corpus: Corpus, table: Table) -> None:
    """Prints the table, and whether the targets are met."""
    print(
        "{sessions} sessions, {calls:,} calls, {characters:,} characters".format(**vars(corpus.outputs)),
        *corpus.digests,
    )
    rows = corpus.rows()
    print(" " * 16, *(f"{column:>12s}" for column in rows["default"]))
    for name, row in rows.items():
        cells = (f"{value:12,}" if isinstance(value, int) else f"{100 * value:11.2f}%" for value in row.values())
        print(f"{name:16s}", *cells, flush=True)
    for name in PRESETS:
        table.row(f"{name}: never shown", corpus.totals_by_name[name].never, most=0, unit="")
    ours = rows["max"]
    for rival in [name for name in (FOLD, LEDGER) if name in rows]:
        for column in ("priced", "break-even"):
            most = 1 if corpus.digests else None  # made-up sessions read at random
            table.row(f"{rival} by max, {column}", rows[rival][column] / max(1e-9, ours[column]), most=most)


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, nargs="*", default=[], metavar="DIR", help="recorded sessions; else made-up ones"
    )
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="headroom's")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each n-th session")
    parser.add_argument("--examples", type=int, default=0, metavar="N", help="print about one cut in N of each")
    parser.add_argument(
        "--all-tools", action="store_true", help="put the outputs of all tools, not of bash and read alone"
    )
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {MEASURED.name}")
    parser.add_argument("--short", action="store_true", help="each 8th session")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is clearly missed")
    chosen = parser.parse_args()
    chosen.every *= 8 if chosen.short else 1
    if chosen.write and (chosen.all_tools or chosen.every > 1 or not (chosen.data and chosen.wheel)):
        parser.error("--write is for bash and read in all sessions of recorded data, with all contestants")
    return chosen


def main() -> None:
    chosen = parsed()
    if not chosen.wheel:
        print(f"{FOLD}: left out, its wheel was not given")
    ways, corpora = contestants(chosen.wheel, any_tool if chosen.all_tools else bash_and_read), []
    for directory in chosen.data or [None]:
        corpora.append(Corpus([digest(directory)] if directory else []))
        run(corpora[-1], sessions(directory, chosen.every), ways, chosen.examples)
    corpora += [both(corpora)] if len(corpora) > 1 else []
    table = Table()
    for corpus in corpora:
        tell(corpus, table)
    if chosen.write:
        kept = {"readcache": __version__, "corpora": [corpus.kept() for corpus in corpora]}
        MEASURED.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    if chosen.check and table.missed:
        sys.exit(f"missed: {', '.join(table.missed)}")


if __name__ == "__main__":
    main()
