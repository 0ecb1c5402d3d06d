"""The tables of what is saved: by the presets, and beside the rivals, as tests/benchmarks/rivals.py measured it.

`python tests/benchmarks/rivals.py --data DIR… --wheel FILE --write` keeps its figures in the file that is read here.
"""

from __future__ import annotations

import json
from typing import Any

from tests.docs.tables import TOP, table

MEASURED = TOP / "tests/benchmarks/measured-rivals.json"
# rows of the tables -> what they are
SETTINGS = {
    "default": "`default`",
    "delta": "`delta`: also the unchanged lines of edited files",
    "max": "`max`: also lines in test logs, diffs, searches",
    "exact key": "a cache keyed on the exact request",
}
CONTESTANTS = {
    "exact key": "a cache keyed on the exact request",
    "trimmed lines": "a ledger of trimmed lines, after OMNI's description",
    "headroom": "headroom 0.42, `cross_turn_dedup`",
    "default": "readcache, `default`",
    "delta": "readcache, `delta`",
    "max": "readcache, `max`",
    "max, whatever it is worth": "the same with `min_worth=0`",
}


def measured() -> list[dict[str, Any]]:
    """For each set of recorded sessions what it holds and how it came out; the last is all of them together."""
    found: list[dict[str, Any]] = json.loads(MEASURED.read_text(encoding="utf-8"))["corpora"]
    return found


def presets() -> str:
    """What each preset saves, over all sessions."""
    corpus = measured()[-1]
    rows = ((what, *_saved(corpus["contestants"][name])) for name, what in SETTINGS.items())
    head = ("settings", "of all tool output", "priced", "markers", "break-even")
    return f"{table(head, rows)}\n{_facts(corpus, digits=16)}\n"


def contest() -> str:
    """What each contestant leaves out, for each set of sessions."""
    head = ("", "of all output", "priced", "markers", "break-even", "never shown", "in front", "apart", "untold")
    parts = []
    for corpus in (found for found in measured() if len(found["sha256"]) == 1):
        rows = ((what, *_cells(corpus["contestants"][name])) for name, what in CONTESTANTS.items())
        parts.append(f"{_facts(corpus)}\n\n{table(head, rows)}")
    return "\n".join(parts)


def _facts(corpus: dict[str, Any], digits: int = 64) -> str:
    """The sessions by what they hold, not by where somebody keeps them."""
    digests = " and ".join(f"`{digest[:digits]}{'…' if digits < 64 else ''}`" for digest in corpus["sha256"])
    size = f"{corpus['calls']:,} calls, {corpus['characters'] / 1e6:.1f} million characters of tool output"
    return f"{corpus['sessions']} sessions, {size}; SHA-256 of the recordings {digests}"


def _saved(row: dict[str, Any]) -> tuple[str, ...]:
    markers = f"{row['cuts']:,} in {row['calls']:,} replies"
    return _percent(row["plain"], 1), _percent(row["priced"], 1), markers, _percent(row["break-even"], 0)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return *_saved(row), *(_percent(row[column], 1) for column in ("never shown", "in front", "apart", "untold"))


def _percent(share: float, places: int) -> str:
    return f"{100 * share:.{places}f} %" if share else "0"
