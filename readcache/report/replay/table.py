"""What a replay found, for people. Lines of words are as long as they are, for the terminal to wrap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from readcache.report.replay.bills import CHARS_PER_TOKEN
from readcache.report.replay.replay_totals import PolicyTotals, ReplayTotals, Sum, ranked
from readcache.report.replay.rereads import WATCHED
from readcache.report.replay.verdict import dollars, many, share, verdict

WIDTH = 100  # columns, if stdout is not a terminal
MOST_TOOLS = 8
NAME = 18  # characters of the name of a tool, or of a way to keep a conversation

Table = list[tuple[str | int, ...]]


def table(found: Sum, policies: Sequence[str]) -> list[str | Table]:
    """The report: lines, and tables whose first row is the heading."""
    total = found.total()
    parts: list[str | Table] = [part for sentence in verdict(total, policies) for part in sentence.split("\n")]
    parts += ["", *_head(total), ""]
    if total.counts["calls"]:
        runs = [total.policies[name] for name in policies]
        parts.append([("", *policies), *_savings(total, runs)])
        parts += ["", *_strategies(total.strategies, total.together)] if total.strategies else []
        parts += ["", *_tools(total, runs, policies), "", *_after_compactions(total)]
        parts += [line for name in policies for line in _faults(name, total.policies[name])]
    return [*parts, *_left_aside(found)]


def _head(total: ReplayTotals) -> Iterator[str]:
    counts = total.counts
    inner = f" ({counts['readers']:,} of sub-agents)" if counts["readers"] else ""
    sizes = f"{many(counts['calls'], 'call')}, {counts['out']:,} characters of tool output"
    yield f"{many(counts['sessions'], 'conversation')}{inner}, {sizes}"
    forms = ", ".join(f"{name} {count:,}" for name, count in ranked(total.forms)) or "none"
    yield f"formats: {forms}"
    if counts["calls"]:
        yield (
            f"lines of files, by any tool: {share(counts['read'], counts['out'])} of the output. Shown before: "
            f"{share(counts['bound'], counts['read'])} of that, {share(counts['bound'], counts['out'])} of all"
        )
    yield from _usage(total)


def _usage(total: ReplayTotals) -> Iterator[str]:
    counts = total.counts
    if not counts["billed_sessions"]:
        yield "no usage fields: what part of all input and of the bill was saved is not known, and not guessed"
        return
    sizes = f"{many(counts['requests'], 'request')}, {counts['prompt']:,} tokens of input"
    yield f"usage fields in {many(counts['billed_sessions'], 'conversation')}: {sizes}"
    if counts["bill"]:
        labels = ", ".join(label for label, _ in ranked(total.models) if label)
        yield f"  the bill: {dollars(counts['bill'])}, by the prices of {labels}"
    if total.unpriced:
        names = ", ".join(name for name, _ in ranked(total.unpriced))
        aside = many(total.unpriced.total(), "conversation")
        yield f"  no prices for {names} ({aside}): give them in --prices FILE"


def _savings(total: ReplayTotals, runs: Sequence[PolicyTotals]) -> Table:
    counts = total.counts
    rows: list[tuple[str, Callable[[PolicyTotals], str]]] = [
        ("saved, characters net of markers", lambda run: f"{run.counts['saved']:,}"),
        ("  of the results that were cut", lambda run: share(run.counts["saved"], run.counts["cut"])),
        ("  of all tool output", lambda run: share(run.counts["saved"], counts["out"])),
        ("  of all tool output, less what bounced", lambda run: share(_kept(run), counts["out"])),
        ("  of all input, by usage fields", lambda run: share(run.counts["saved_input"], counts["prompt"])),
        ("  of the bill, by usage fields", lambda run: share(run.counts["saved_bill"], counts["bill"])),
        ("priced while carried, of all tool output", _priced),
        ("break-even: cuts that may cost a turn", _break_even),
        ("results with something left out", lambda run: f"{run.counts['omissions']:,}"),
        ("markers", lambda run: f"{run.counts['markers']:,}"),
        ("bounces: asked for again at once", _immediate_rereads),
        ("wrong omissions, each one checked", lambda run: f"{run.counts['wrong']:,}"),
    ]
    return [(label, *map(cell, runs)) for label, cell in rows]


def _priced(run: PolicyTotals) -> str:
    return share(run.counts["saved_priced"], run.counts["out_priced"])


def _break_even(run: PolicyTotals) -> str:
    saved = run.counts["saved_priced"]
    return share(saved, saved + run.counts["turns_priced"])


def _kept(run: PolicyTotals) -> float:
    """Characters saved by omissions after which the same was not asked for again at once."""
    return run.counts["saved"] - CHARS_PER_TOKEN * run.counts["tokens_bounced"]


def _immediate_rereads(run: PolicyTotals) -> str:
    return f"{run.counts['bounces']:,} ({share(run.counts['bounces'], run.counts['omissions'])})"


def _strategies(
    strategies: Mapping[str, Counter[str]], together: Mapping[str, Mapping[str, Counter[str]]]
) -> Iterator[str | Table]:
    """Beside a conversation from which nothing leaves; each way alone, then with each policy."""
    none, recorded = strategies["none"], strategies["recorded"]
    yield f"{many(none['sessions'], 'conversation')} kept in other ways"
    rows: Table = [("", *_strategy_cells(none, none))]
    for spec, alone in strategies.items():
        pairs = {f"  + {name}": one for name, one in together[spec].items()}
        rows += [
            (_fitted(label, NAME), *_strategy_cells(one, none).values())
            for label, one in {spec: alone, **pairs}.items()
        ]
    yield rows
    yield "  the agent is taken to do as it did; each missed need costs one turn, and the lines come back"
    if recorded["expiries"]:
        part = share(recorded["bill_expired"], recorded["bill"])
        yield f"  the cache expired in {many(recorded['expiries'], 'pause')}: {part} of the bill as recorded"


def _strategy_cells(one: Counter[str], none: Counter[str]) -> dict[str, str]:
    """Return the cells of a row by their headings."""
    return {
        "bill": share(one["bill"], none["bill"]),
        "money": dollars(one["money"]) if one["money"] else "n/a",
        "carried": share(one["carried"], none["carried"]),
        "turns": f"{one['turns']:,}",
        "cuts": f"{one['shortened']:,}",
        "rewritten": f"{one['rewritten'] / 1000:,.0f}k",
        "needs missed": f"{one['missed']:,} ({share(one['missed'], one['needs'])})",
        "re-reads": f"{one['rereads_missed']:,}",
        "names": share(one["names_missed"], one["names"]),
    }


def _tools(total: ReplayTotals, runs: Sequence[PolicyTotals], policies: Sequence[str]) -> Iterator[str | Table]:
    rows: Table = [("saved, by tool", "calls", "output", *policies)]
    for tool, out in ranked(total.out_by_tool)[:MOST_TOOLS]:
        label = f"  {_fitted(tool, NAME)}"
        rows.append((label, total.calls_by_tool[tool], out, *(run.by_tool[tool] for run in runs)))
    yield rows
    if (rest := len(total.out_by_tool) - MOST_TOOLS) > 0:
        yield f"  and {rest} more tools" if rest > 1 else "  and one more tool"


def _after_compactions(total: ReplayTotals) -> Iterator[str]:
    counts = total.counts
    if not counts["cuts"]:
        yield "no compactions"
        return
    restored = f"; after {counts['restored']:,} of them the host showed files again by itself"
    yield f"{many(counts['cuts'], 'compaction')}{restored if counts['restored'] else ''}"
    if not counts["reread"]:
        yield f"  nothing that they had taken away was read again within {WATCHED} calls"
        return
    yield f"  read again within {WATCHED} calls: {counts['reread']:,} characters that a compaction had taken away"
    restorable, mean = share(counts["held"], counts["reread"]), counts["plan_tokens"] // counts["cuts"]
    yield f"  a restore plan would have held {restorable} of them, in {mean:,} tokens on average"


def _faults(name: str, run: PolicyTotals) -> Iterator[str]:
    yield from (f"WRONG, {name}: {fault}" for fault in run.wrong)
    for cause in ("internal_error", "store_failed"):
        if run.counts[cause]:
            yield f"{name}: {run.counts[cause]:,} calls were shown in full after a failure of readcache ({cause})"


def _left_aside(found: Sum) -> Iterator[str]:
    strange = f" of no known format, such as {found.strangers[0]}" if found.strangers else ""
    said: Sequence[tuple[int, str, str]] = (
        (found.too_old, "conversation", " from before --since"),
        (found.copies, "copy", " of a conversation, counted once"),
        (len(found.strangers), "file", strange),
        (found.damage.lines, "damaged line", f" skipped, the first at {found.damage.first}"),
    )
    parts = [many(count, what) + more for count, what, more in said if count]
    if parts:
        yield ""
        yield from (f"left aside: {part}" for part in parts)


def _fitted(text: str, size: int) -> str:
    """Its end, which tells files and calls apart."""
    return text if len(text) <= size else "…" + text[1 - size :]
