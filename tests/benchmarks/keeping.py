"""Ways of keeping a conversation: `readcache replay --conversation` beside an independent sketch of the same idea, and
what other tools come to with each of them.

    python tests/benchmarks/keeping.py --needs needs.py --data DIR… [--check]
    PYTHONPATH=. python tests/benchmarks/keeping.py --rivals [--wheel FILE] --data DIR…

The sketch knows nothing of the package: it prices recorded sessions under policies that shorten the conversation, and
counts the edits whose old lines had gone. Both get the sessions of 120,000 tokens and more with three edits or more, at
two prices of cached input. Bill, carried tokens and missed needs are to agree within 2 %.

The sketch counts four characters as a token, and so does the replay here: its sizes are not those of a model, see
counting.py.

With `--rivals` the contestants of contestants.py leave out of the same sessions what they do, under the same bill and
the same needs. Each is taken to be told of what left, and to show a result whole where one of its lines has gone: more
than OMNI's ledger and a cache keyed on requests know. FILE is headroom's wheel, see rivals.py.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from contestants import Answer, bash_and_read
from measuring import sessions
from replaying import replay
from rivals import contestants

from readcache.core.model.text import split_lines
from readcache.core.model.tool_call import ToolCall
from readcache.report.replay.bills import RATIOS
from readcache.report.replay.conversations import Conversations, Sending, largest_size

WAYS = ("none", "compact:160000", "clear:160000:60000", "clear:100000:60000", "mask:10")
# The sketch goes on to clear at each turn where everything else has more than the second mark; `clear` does not then.
SKETCHED = ("none", "compact:160000", "clear:160000:120000", "clear:100000:0", "mask:10")
READS = (0.1, 0.05)  # prices of cached input beside uncached
LEAST, EDITS = 120_000, 3
CHARS_PER_TOKEN = 4  # of the sketch, which knows no models: its sizes are its own
NEAR = 0.02
SHARES = ("bill", "carried")  # beside those of `none`
COUNTS = ("needs", "missed")


def loaded(script: Path) -> Any:
    """The sketch, as a module."""
    spec = importlib.util.spec_from_file_location("needs", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def long_sessions(sketch: Any, paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Those that the sketch takes, without the compactions of their hosts."""
    for row in sketch.T.sessions(map(str, paths)):
        records = [record for record in row["records"] if record["tool"] != "_compact"]
        calls = [sketch.Call(record) for record in records]
        if sum(call.out + call.said - 30 for call in calls) >= LEAST and sum(bool(c.needs) for c in calls) >= EDITS:
            yield {**row, "agent": "sketch", "records": records}  # a host would have instructions of its own


def sketched(sketch: Any, rows: Sequence[dict[str, Any]], read: float) -> dict[str, Counter[str]]:
    """What the sketch finds, by way."""
    sums = {spec: Counter[str]() for spec in SKETCHED}
    for row in rows:
        calls = [sketch.Call(record) for record in row["records"]]
        for spec, total in sums.items():
            kind, *sizes = spec.split(":")
            talk = sketch.Conversation(calls, read)
            for number in range(len(calls)):
                talk.turn(number)
                talk.shorten(kind, *map(int, sizes))
            total.update(talk.figures)
    return sums


def replayed(rows: Sequence[dict[str, Any]], read: float, ways: Sequence[str] = SKETCHED) -> dict[str, Counter[str]]:
    """What `readcache replay` finds, by way."""
    with tempfile.TemporaryDirectory() as directory:
        data, prices = Path(directory, "rows.jsonl"), Path(directory, "prices.json")
        row = {"input": 1, "read": read, "write": 1.25, "output": 5, "chars_per_token": CHARS_PER_TOKEN}
        data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        prices.write_text(json.dumps({"sketch": row}))
        words = [word for spec in ways for word in ("--conversation", spec)]
        told, *_ = replay([data], "--policy", "default", "--prices", str(prices), "--model", "sketch", *words)
    return {spec: Counter(counts) for spec, counts in told["conversation"].items()}


def with_rivals(paths: Sequence[Path], wheel: Path | None, read: float) -> dict[str, dict[str, Counter[str]]]:
    """What each contestant comes to with each way; "": the way alone."""
    from tests.replay.plain_form import item_of

    rivals = contestants(wheel, bash_and_read)
    sums = {spec: {name: Counter[str]() for name in ("", *rivals)} for spec in (*WAYS, "anthropic", "gemini-cli")}
    for records in (records for path in paths for records in sessions(path)):
        kept = [record for record in records if record["tool"] != "_compact"]
        calls = [one for n, record in enumerate(kept) if isinstance(one := item_of(f"c{n}", record), ToolCall)]
        if largest_size(calls, CHARS_PER_TOKEN) < LEAST:
            continue
        answers = {name: way(kept) for name, way in rivals.items()}
        prices = replace(RATIOS, read=read)
        talk = Conversations(list(sums), prices, tuple(rivals), chars_per_token=CHARS_PER_TOKEN)
        for number, call in enumerate(calls):
            texts = {name: sent(call.output, found[number]) for name, found in answers.items()}
            talk.call(call, {name: Sending(text, text) for name, text in texts.items()}, is_read=False)
        found = talk.end()
        for spec, by_name in sums.items():
            for name, total in by_name.items():
                total.update(found[spec, name])
    return sums


def sent(output: str, answer: Answer | None) -> str:
    """The output with markers in place of what was cut."""
    lines = split_lines(output)
    for replacement in reversed(answer.replacements if answer else ()):
        lines[replacement.lines.start : replacement.lines.stop] = [replacement.marker]
    return "\n".join(lines) + "\n" if answer and answer.replacements else output


def told(found: dict[str, Counter[str]], spec: str) -> dict[str, float]:
    """The figures that are compared."""
    shares = {name: found[spec][name] / found["none"][name] for name in SHARES}
    return {**shares, **{name: found[spec][name] for name in COUNTS}}


def apart(one: float, other: float) -> float:
    """How far two figures are apart, as a share."""
    return abs(one - other) / max(one, other) if max(one, other) else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--needs", type=Path, metavar="FILE", help="the sketch, needs.py")
    what.add_argument("--rivals", action="store_true", help="what other tools come to")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="headroom's")
    parser.add_argument("--data", type=Path, nargs="+", required=True, metavar="PATH", help="recorded sessions")
    parser.add_argument("--check", action="store_true", help="exit 1 when the two differ by more than 2 %%")
    chosen, missed = parser.parse_args(), []
    if chosen.rivals:
        found = with_rivals(chosen.data, chosen.wheel, READS[0])
        for spec, by_name in found.items():
            for name, counts in by_name.items():
                bill, carried = (counts[size] / found["none"][""][size] for size in SHARES)
                print(f"{spec:20} {name:26} bill {bill:.3f}  carried {carried:.3f}", end="  ")
                print(f"needs missed {counts['missed'] / max(1, counts['needs']):.1%}", flush=True)
        return
    sketch = loaded(chosen.needs)
    rows = list(long_sessions(sketch, chosen.data))
    for read in READS:
        theirs, ours = sketched(sketch, rows, read), replayed(rows, read)
        print(f"{len(rows)} sessions, cached input at {read}: readcache replay, the sketch, how far they are apart")
        for spec in SKETCHED:
            for (name, one), other in zip(told(ours, spec).items(), told(theirs, spec).values(), strict=True):
                if (far := apart(one, other)) > NEAR:
                    missed.append(f"{spec} {name}")
                print(f"{spec:20} {name:8} {one:10,.4g} {other:10,.4g} {far:8.2%}")
    if chosen.check and (missed or not rows):
        sys.exit(f"more than {NEAR:.0%} apart: {', '.join(missed) or 'no session'}")


if __name__ == "__main__":
    main()
