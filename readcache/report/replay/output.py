"""Report a replay: recommend what to switch on, and give the numbers as tables and as JSON.

Lines of text are not wrapped. The terminal does that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from readcache.report import dollars, many, share
from readcache.report.replay.conversations import LONG, RECORDED, StrategyCounts
from readcache.report.replay.groups import group_json, group_table, groups_by
from readcache.report.replay.policy_run import WATCHED
from readcache.report.replay.replay_totals import PolicyTotals, ReplayTotals, Sum, ranked
from readcache.report.replay.schedules import BEST_NOTE, advice, best_schedule, schedule_rows
from readcache.report.replay.turns import ALL, KINDS, settings, turn_rows

# Hosts that `readcache init` knows.
_INIT = ("claude-code", "codex", "copilot", "gemini", "mini-swe-agent", "opencode", "pi")
WIDTH = 100  # columns, if stdout is not a terminal
MOST_TOOLS = 8
MOST_HOSTS = 3  # that have columns in the table of turns
NAME = 18  # characters of the name of a tool or a strategy
NO_FAULT_RATE = "No fault rate: a recording does not react to markers. `readcache gain` has it for live sessions."

Table = list[tuple[str | int, ...]]


def verdict(total: ReplayTotals, policies: Sequence[str]) -> Iterator[str]:
    """Yield the recommendations as sentences. They omit unknown numbers."""
    if not total.counts["out"]:  # no calls, or results that no loader understood
        return
    yield _of_results(total, policies)
    if total.strategies:
        yield from _of_long(total)
        yield from advice(total.strategies, policies, next(iter(turn_hosts(total)), ""))


def _of_results(total: ReplayTotals, policies: Sequence[str]) -> str:
    name = max(policies, key=lambda name: [total.policies[name].counts[by] for by in ("saved_bill", "saved_priced")])
    counts, bill = total.policies[name].counts, total.counts["bill"]
    if counts["saved_priced"] <= 0:
        return "Lines that the agent could still see did not come again: readcache would have saved nothing."
    saved = f"{share(counts['saved_priced'], counts['out_priced'])} of what tool output cost while it was carried"
    if counts["saved_bill"]:
        saved = f"{dollars(counts['saved_bill'])} of {dollars(bill)} ({share(counts['saved_bill'], bill)})"
    host = next((form for form, _ in ranked(total.forms) if form in _INIT), "HOST")
    return (
        f"Leaving out what the agent could still see would have saved {saved}:\n  readcache init {host} --policy {name}"
    )


def _of_long(total: ReplayTotals) -> Iterator[str]:
    counts = total.counts
    if counts["long"]:
        many_of = f"{counts['long']:,} of {many(counts['sessions'], 'conversation')}"
        bill = f": {share(counts['long_bill'], counts['bill'])} of the bill" if counts["bill"] else ""
        yield f"{many_of} reached more than {LONG:,} tokens{bill}."


def table(found: Sum, policies: Sequence[str], by: str = "") -> list[str | Table]:
    """Return the report: lines, and tables whose first row is the heading. `by`: a session, day or project for each
    row; "" for the report on all."""
    if by:
        return [*group_table(by, groups_by(by, found.conversations), policies), *_left_aside(found)]
    total = found.total()
    parts: list[str | Table] = [part for sentence in verdict(total, policies) for part in sentence.split("\n")]
    parts += ["", *_head(total), ""]
    if total.counts["calls"]:
        runs = [total.policies[name] for name in policies]
        parts += [[("", *policies), *savings(total.counts, runs)], NO_FAULT_RATE]
        parts += ["", *_turns(total)] if total.turns else []
        parts += ["", *_strategies(total.strategies)] if total.strategies else []
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
    if counts["calls"] and not counts["out"]:
        yield "no result of these calls has a text, so nothing is known of what could be saved"
    elif counts["calls"]:
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


def savings(counts: Counter[str], runs: Sequence[PolicyTotals]) -> list[tuple[str, ...]]:
    """Return a row for each measure of the policies: its name, and a cell for each run. `counts`: of all runs."""
    rows: list[tuple[str, Callable[[Counter[str]], str]]] = [
        ("saved, characters net of markers", lambda run: f"{run['saved']:,}"),
        ("  of the results that were cut", lambda run: share(run["saved"], run["cut"])),
        ("  of all tool output", lambda run: share(run["saved"], counts["out"])),
        ("  of all tool output, less what bounced", lambda run: share(_kept(run), counts["out"])),
        ("  of all input, by usage fields", lambda run: share(run["saved_input"], counts["prompt"])),
        ("  of the bill, by usage fields", lambda run: share(run["saved_bill"], counts["bill"])),
        ("priced while carried, of all tool output", lambda run: share(run["saved_priced"], run["out_priced"])),
        ("break-even: cuts that may cost a turn", _break_even),
        ("results with something left out", lambda run: f"{run['omissions']:,}"),
        ("markers", lambda run: f"{run['markers']:,}"),
        ("bounces: asked for again within 4 calls", _bounces),
        ("wrong omissions, each one checked", lambda run: f"{run['wrong']:,}"),
    ]
    return [(label, *(cell(run.counts) for run in runs)) for label, cell in rows]


def _break_even(run: Counter[str]) -> str:
    return share(run["saved_priced"], run["saved_priced"] + run["turns_priced"])


def _bounces(run: Counter[str]) -> str:
    return f"{run['bounces']:,} ({share(run['bounces'], run['omissions'])})"


def _kept(run: Counter[str]) -> float:
    """Return the characters saved, without the omissions that caused an immediate reread."""
    return run["saved"] - run["chars_bounced"]


def turn_hosts(total: ReplayTotals) -> list[str]:
    """Return the hosts whose turns are shown: those with the largest bill, then with the most turns."""
    bills, turns = total.turn_bills, total.turns
    return sorted(turns, key=lambda host: (-bills[host][ALL], -turns[host].total(), host))[:MOST_HOSTS]


def _turns(total: ReplayTotals) -> Iterator[str | Table]:
    hosts = turn_hosts(total)
    heads = (cell for host in hosts for cell in (host, "its bill"))
    yield [("where your turns go", *heads), *turn_rows(total.turns, total.turn_bills, hosts)]
    yield "  a turn costs its prompt, read from the cache, and its output; the rest of a bill is new text"
    yield from settings(total.turns, total.turn_bills)


def _strategies(strategies: StrategyCounts) -> Iterator[str | Table]:
    """Yield each strategy without a policy and with each policy, compared with a conversation that keeps everything."""
    recorded, rows = strategies[RECORDED, ""], schedule_rows(strategies)
    yield f"{many(recorded['sessions'], 'conversation')} kept in other ways"
    yield [("", *rows[0][1]), *((_fitted(label, NAME), *cells.values()) for label, cells in rows)]
    yield f"  {BEST_NOTE}"
    yield "  the agent is taken to do as it did; each missed need costs one turn, and the lines come back"
    if recorded["expiries"]:
        part = share(recorded["bill_expired"], recorded["bill"])
        yield f"  the cache expired in {many(recorded['expiries'], 'pause')}: {part} of the bill as recorded"


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
    """Return the text, or only its end, which distinguishes files and calls."""
    return text if len(text) <= size else "…" + text[1 - size :]


def replay_json(found: Sum, policies: Sequence[str], by: str = "") -> dict[str, Any]:
    """Return the report as one object for JSON. `by`: as for `table`."""
    total = found.total()
    specs = [spec for spec, policy in total.strategies if not policy]
    runs = {name: total.policies[name] for name in policies}
    return {
        "verdict": list(verdict(total, policies)),
        "counts": dict(total.counts),
        "formats": dict(total.forms),
        "tools": {
            name: {"calls": calls, "characters": total.out_by_tool[name]} for name, calls in ranked(total.calls_by_tool)
        },
        "policies": {
            name: {**run.counts, "by_tool": dict(run.by_tool), "wrong_ones": run.wrong} for name, run in runs.items()
        },
        "turns": {
            host: {kind: {"turns": turns[kind], "bill": total.turn_bills[host][kind]} for kind in KINDS}
            | {ALL: {"turns": turns.total(), "bill": total.turn_bills[host][ALL]}}
            for host, turns in total.turns.items()
        },
        "settings": list(settings(total.turns, total.turn_bills)),
        "models": dict(total.models),
        "unpriced": dict(total.unpriced),
        "conversation": {spec: dict(total.strategies[spec, ""]) for spec in specs},
        "best_schedule": best_schedule(total.strategies) if total.strategies else None,
        "together": {spec: {name: dict(total.strategies[spec, name]) for name in policies} for spec in specs},
        "left_aside": {
            "too_old": found.too_old,
            "copies": found.copies,
            "no_transcripts": len(found.strangers),
            "damaged_lines": found.damage.lines,
            "first_damaged": found.damage.first,
            "not_understood": found.not_understood,
        },
        "by": by,
        "rows": [group_json(group, policies) for group in groups_by(by, found.conversations)] if by else [],
    }
