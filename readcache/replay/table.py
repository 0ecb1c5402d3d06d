"""What a replay found, for people. Lines of words are as long as they are, for the terminal to wrap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from readcache.replay.bills import CHARS_PER_TOKEN
from readcache.replay.rereads import WATCHED
from readcache.replay.tally import PolicyTally, Sum, Tally, ranked
from readcache.replay.verdict import dollars, many, share, verdict

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
        arms = [total.policies[name] for name in policies]
        parts.append([("", *policies), *_savings(total, arms)])
        parts += ["", *_ways(total.ways, total.together)] if total.ways else []
        parts += ["", *_tools(total, arms, policies), "", *_after_compactions(total)]
        parts += [line for name in policies for line in _faults(name, total.policies[name])]
    return [*parts, *_left_aside(found)]


def _head(total: Tally) -> Iterator[str]:
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


def _usage(total: Tally) -> Iterator[str]:
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


def _savings(total: Tally, arms: Sequence[PolicyTally]) -> Table:
    counts = total.counts
    rows: list[tuple[str, Callable[[PolicyTally], str]]] = [
        ("saved, characters net of markers", lambda arm: f"{arm.counts['saved']:,}"),
        ("  of the results that were cut", lambda arm: share(arm.counts["saved"], arm.counts["cut"])),
        ("  of all tool output", lambda arm: share(arm.counts["saved"], counts["out"])),
        ("  of all tool output, less what bounced", lambda arm: share(_kept(arm), counts["out"])),
        ("  of all input, by usage fields", lambda arm: share(arm.counts["saved_input"], counts["prompt"])),
        ("  of the bill, by usage fields", lambda arm: share(arm.counts["saved_bill"], counts["bill"])),
        ("priced while carried, of all tool output", _priced),
        ("break-even: cuts that may cost a turn", _break_even),
        ("results with something left out", lambda arm: f"{arm.counts['omissions']:,}"),
        ("markers", lambda arm: f"{arm.counts['markers']:,}"),
        ("bounces: asked for again at once", _bounces),
        ("wrong omissions, each one checked", lambda arm: f"{arm.counts['wrong']:,}"),
    ]
    return [(label, *map(cell, arms)) for label, cell in rows]


def _priced(arm: PolicyTally) -> str:
    return share(arm.counts["saved_priced"], arm.counts["out_priced"])


def _break_even(arm: PolicyTally) -> str:
    saved = arm.counts["saved_priced"]
    return share(saved, saved + arm.counts["turns_priced"])


def _kept(arm: PolicyTally) -> float:
    """Characters saved by omissions after which the same was not asked for again at once."""
    return arm.counts["saved"] - CHARS_PER_TOKEN * arm.counts["tokens_bounced"]


def _bounces(arm: PolicyTally) -> str:
    return f"{arm.counts['bounces']:,} ({share(arm.counts['bounces'], arm.counts['omissions'])})"


def _ways(
    ways: Mapping[str, Counter[str]], together: Mapping[str, Mapping[str, Counter[str]]]
) -> Iterator[str | Table]:
    """Beside a conversation from which nothing leaves; each way alone, then with each policy."""
    none, recorded = ways["none"], ways["recorded"]
    yield f"{many(none['sessions'], 'conversation')} kept in other ways"
    rows: Table = [("", *_way_cells(none, none))]
    for spec, alone in ways.items():
        pairs = {f"  + {name}": one for name, one in together[spec].items()}
        rows += [
            (_fitted(label, NAME), *_way_cells(one, none).values()) for label, one in {spec: alone, **pairs}.items()
        ]
    yield rows
    yield "  the agent is taken to do as it did; each missed need costs one turn, and the lines come back"
    if recorded["expiries"]:
        part = share(recorded["bill_expired"], recorded["bill"])
        yield f"  the cache expired in {many(recorded['expiries'], 'pause')}: {part} of the bill as recorded"


def _way_cells(one: Counter[str], none: Counter[str]) -> dict[str, str]:
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


def _tools(total: Tally, arms: Sequence[PolicyTally], policies: Sequence[str]) -> Iterator[str | Table]:
    rows: Table = [("saved, by tool", "calls", "output", *policies)]
    for tool, out in ranked(total.out_by_tool)[:MOST_TOOLS]:
        label = f"  {_fitted(tool, NAME)}"
        rows.append((label, total.calls_by_tool[tool], out, *(arm.by_tool[tool] for arm in arms)))
    yield rows
    if (rest := len(total.out_by_tool) - MOST_TOOLS) > 0:
        yield f"  and {rest} more tools" if rest > 1 else "  and one more tool"


def _after_compactions(total: Tally) -> Iterator[str]:
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


def _faults(name: str, arm: PolicyTally) -> Iterator[str]:
    yield from (f"WRONG, {name}: {fault}" for fault in arm.wrong)
    for cause in ("internal_error", "store_failed"):
        if arm.counts[cause]:
            yield f"{name}: {arm.counts[cause]:,} calls were shown in full after a failure of readcache ({cause})"


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
