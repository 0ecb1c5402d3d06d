"""What is saved, in words and tables: by the presets, as `readcache replay` told it, and beside the rivals.

    python tests/benchmarks/replaying.py --data DIR… --checks trajectories.py --write
    python tests/benchmarks/rivals.py --data DIR… --wheel FILE --write

keep their figures in the files that are read here.
"""

from __future__ import annotations

import json
from textwrap import fill
from typing import Any

from tests.docs.tables import TOP, table

MEASURED = TOP / "tests/benchmarks/measured-rivals.json"
REPLAYED = TOP / "tests/benchmarks/measured-replay.json"
BILLED = TOP / "tests/benchmarks/measured-bill.json"
WIDTH = 120
# rows of the tables -> what they are
SETTINGS = {
    "default": "`default`",
    "delta": "`delta`: also the unchanged lines of edited files",
    "max": "`max`: also lines in test logs, diffs, searches",
}
EXACT = "exact key"
AGENTS = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "copilot-cli": "Copilot CLI",
    "mini-swe-agent": "mini-swe-agent",
    "opencode": "opencode",
    "openhands": "OpenHands",
    "pi": "pi",
    "swe-agent": "SWE-agent",
}
NUMBERS = "no one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905  shorter so
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


def replayed() -> dict[str, Any]:
    """What `readcache replay` told of the recorded sessions, and what the check counted as read again."""
    found: dict[str, Any] = json.loads(REPLAYED.read_text(encoding="utf-8"))
    return found


def headline() -> str:
    """The first figures that a visitor reads."""
    found, billed = replayed(), json.loads(BILLED.read_text(encoding="utf-8"))
    default, most, wrong = found["policies"]["default"], found["policies"]["max"], _wrong(found)
    least, greatest = (_percent(billed["policies"][name]["bill"], 1) for name in ("default", "max"))
    return _paragraph(
        f"In {found['calls']:,} recorded calls of {NUMBERS[len(found['agents'])]} coding agents, readcache omitted "
        f"{_percent(default['plain'], 0)} of all tool output ({_percent(most['plain'], 0)} with the preset `max`), and "
        f"{_percent(default['bound'], 0)} of the lines that agents read again and could still see. **{wrong}.** In "
        f"{billed['sessions']:,} other conversations, it would have saved [{least.removesuffix(' %')} to "
        f"{greatest}](docs/measuring.md) of the bill."
    )


def reread() -> str:
    """What was left out of the lines that agents read again, and who says so."""
    found = replayed()
    ours, exact = _percent(found["policies"]["default"]["bound"], 0), _percent(found["exact_bound"], 0)
    return _paragraph(
        f"Agents often read lines of files that they could still see. `default` omitted {ours} of these lines, by "
        f"their characters. A cache keyed on the exact request omitted {exact}. A parser that is not part of readcache "
        "counted the lines. It counts a line only if an earlier read of the file had shown it, and not if only a "
        f"search, a diff or the agent's own command had. **{_wrong(found)}**: a separate program keeps its own record "
        "of the agent's conversation, and checked every omission against it."
    )


def _wrong(found: dict[str, Any]) -> str:
    wrong = sum(row["wrong"] for row in found["policies"].values())
    return f"It omitted lines wrongly {wrong:,} times" if wrong else "It never omitted a line wrongly"


def presets() -> str:
    """What each preset saves, over all sessions."""
    found, rivals = replayed(), measured()[-1]
    rows = [(what, *_saved(found["policies"][name])) for name, what in SETTINGS.items()]
    exact = rivals["contestants"][EXACT]
    rows.append(("a cache keyed on the exact request", *_of_rival(exact)))
    head = ("settings", "of all tool output", "priced", "markers", "break-even")
    shares = sorted(found["agents"].values())
    agents = [AGENTS[name] for name in found["agents"]]
    who = _paragraph(
        f"The sessions are of {', '.join(agents[:-1])} and {agents[-1]}; agents differ widely: by default "
        f"{_percent(shares[0], 0).removesuffix(' %')} to {_percent(shares[-1], 0)} of the output."
    )
    return f"{table(head, rows)}\n{_facts(found, digits=16)}\n\n{who}\n"


def bill() -> str:
    """What each preset saves of the bill of public transcripts, by their own usage fields."""
    found = json.loads(BILLED.read_text(encoding="utf-8"))
    head = ("settings", "of all tool output", "of all input", "of the bill")
    rows = [
        (f"`{name}`", *(_percent(found["policies"][name][part], 1) for part in ("plain", "input", "bill")))
        for name in SETTINGS
    ]
    sizes = f"{found['sessions']:,} conversations, {found['requests']:,} requests, {found['prompt'] / 1e6:,.0f} million"
    priced = found["sessions"] - found["unpriced_sessions"]
    which = "all of them" if priced == found["sessions"] else f"the {priced:,} whose model has a known price"
    facts = _paragraph(f"{found['transcripts']}: {sizes} tokens of input. The bill counts {which}.")
    return f"{table(head, rows)}\n{facts}\n"


def _paragraph(text: str) -> str:
    return fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def contest() -> str:
    """What each contestant leaves out, for each set of sessions."""
    head = ("", "of all output", "priced", "markers", "break-even", "never shown", "in front", "apart", "untold")
    parts = []
    for corpus in (found for found in measured() if len(found["sha256"]) == 1):
        rows = ((what, *_cells(corpus["contestants"][name])) for name, what in CONTESTANTS.items())
        parts.append(f"{_facts(corpus)}\n\n{table(head, rows)}")
    return "\n".join(parts)


def beside() -> str:
    """The rivals that a visitor asks about, over all sessions."""
    found = measured()[-1]
    rows = []
    for name in ("exact key", "headroom", "default", "max"):
        row = found["contestants"][name]
        saved, priced, _, break_even = _of_rival(row)
        rows.append((CONTESTANTS[name], saved, priced, f"{row['calls']:,}", break_even))
    return table(("", "of all tool output", "priced", "shortened replies", "break-even"), rows)


def _facts(corpus: dict[str, Any], digits: int = 64) -> str:
    """The sessions by what they hold, not by where somebody keeps them."""
    digests = " and ".join(f"`{digest[:digits]}{'…' if digits < 64 else ''}`" for digest in corpus["sha256"])
    size = f"{corpus['calls']:,} calls, {corpus['characters'] / 1e6:.1f} million characters of tool output"
    return f"{corpus['sessions']} sessions, {size}; SHA-256 of the recordings {digests}"


def _saved(row: dict[str, Any]) -> tuple[str, ...]:
    markers = f"{row['markers']:,} in {row['replies']:,} replies"
    return _percent(row["plain"], 1), _percent(row["priced"], 1), markers, _percent(row["break-even"], 0)


def _of_rival(row: dict[str, Any]) -> tuple[str, ...]:
    return _saved({**row, "markers": row["cuts"], "replies": row["calls"]})


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return *_of_rival(row), *(_percent(row[column], 1) for column in ("never shown", "in front", "apart", "untold"))


def _percent(share: float, decimals: int) -> str:
    return f"{100 * share:.{decimals}f} %" if share else "0"
