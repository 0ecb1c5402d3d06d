"""Compare the schedules of a replay: find the cheapest that takes little from the agent, and what it would change.

A schedule is a strategy for a conversation, such as `clear:160k:60k`. The advice weighs money and needs: by money
alone, a compaction nearly always wins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from readcache.report import dollars, many, share
from readcache.report.replay.conversations import RECORDED, StrategyCounts, parse_strategy

MOST_MISSED = 0.05  # share of the needs: a schedule that misses more of them is not recommended
MARK = " *"  # after the best schedule in a table
FEW = f"at most {100 * MOST_MISSED:.0f} % of what edits needed"
BEST_NOTE = f"* the best: no schedule that misses {FEW} is cheaper"
# What switches a schedule on, by its kind, and for hosts with a setting of their own.
_LINES = {
    "clear": "messages = clear(messages, session, above={above:_}, down_to={down_to:_})",
    "compact": "Compactor(session, summarize, trigger_tokens={above:_})",
    "edit": 'context_management={{"edits": [{{"type": "clear_tool_uses_20250919"}}]}}',
}
_SETTINGS = {
    ("claude-code", "compact"): "export CLAUDE_CODE_AUTO_COMPACT_WINDOW={above}",
    ("codex", "compact"): "model_auto_compact_token_limit = {above}",
}


def best_schedule(strategies: StrategyCounts) -> str:
    """Return the cheapest of the host's own schedule and all that miss at most `MOST_MISSED` of the needs."""
    recorded = strategies[RECORDED, ""]["bill"]
    fair = [spec for spec, one in _alone(strategies).items() if _is_fair(one) and one["bill"] < recorded]
    return min(fair, key=lambda spec: strategies[spec, ""]["bill"], default=RECORDED)


def _alone(strategies: StrategyCounts) -> dict[str, Counter[str]]:
    """Return the schedules that shorten something, without a preset."""
    alone = {spec: one for (spec, policy), one in strategies.items() if not policy and spec != RECORDED}
    return {spec: one for spec, one in alone.items() if one["shortened"]}


def _is_fair(counts: Counter[str]) -> bool:
    return counts["missed"] <= MOST_MISSED * counts["needs"]


def advice(strategies: StrategyCounts, policies: Sequence[str], host: str) -> Iterator[str]:
    """Yield the advice as sentences. A line below a sentence switches the schedule on. `host`: the one that most of the
    bill belongs to."""
    recorded, best = strategies[RECORDED, ""], best_schedule(strategies)
    # All others are compared with `none`, which no host can do above its window.
    tried = len({spec for spec, _ in strategies} - {"none"})
    kept = f"{many(recorded['sessions'], 'conversation')}: of the {tried} schedules tried,"
    if best == RECORDED:
        yield f"{kept} {_nothing_better(strategies)}."
        return
    one = strategies[best, ""]
    yield (
        f"{kept} {best} is the cheapest that misses {FEW}. "
        f"Beside what you do now, it would have cost {_less(one, recorded)}:\n  {_line(best, host)}"
    )
    pairs = {name: strategies[best, name] for name in policies}
    name = min(pairs, key=lambda name: pairs[name]["bill"])
    if _is_fair(pairs[name]) and pairs[name]["bill"] < one["bill"]:
        line = f'session = Session(policy=Policy.named("{name}"))'
        yield f"Both together, {best} with {name}, would have cost {_less(pairs[name], recorded)}:\n  {line}"


def _nothing_better(strategies: StrategyCounts) -> str:
    """Return the rest of the advice to change nothing. A schedule that is cheaper misses too many needs."""
    recorded, alone = strategies[RECORDED, ""], _alone(strategies)
    cheapest = min(alone, key=lambda spec: alone[spec]["bill"], default=RECORDED)
    if cheapest == RECORDED or alone[cheapest]["bill"] >= recorded["bill"]:
        return "what you do now is the cheapest"
    less = _less(alone[cheapest], recorded)
    return f"what you do now is the best. {cheapest} is cheaper and takes too much: it would have cost {less}"


def _line(spec: str, host: str) -> str:
    strategy = parse_strategy(spec)
    line = _SETTINGS.get((host, strategy.kind)) or _LINES.get(strategy.kind, f"keep the conversation as {spec}")
    return line.format(above=strategy.above, down_to=strategy.down_to)


def _less(counts: Counter[str], recorded: Counter[str]) -> str:
    """Return how much less a strategy costs than the host's recorded one, and what it misses, as text."""
    less = share(recorded["bill"] - counts["bill"], recorded["bill"])
    money = f" ({dollars(recorded['money'] - counts['money'])})" if recorded["money"] else ""
    gone = f", with {share(counts['missed'], counts['needs'])} of what edits needed gone" if counts["needs"] else ""
    return f"{less} less{money}{gone}"


def schedule_rows(strategies: StrategyCounts) -> list[tuple[str, dict[str, str]]]:
    """Return for each schedule, without a policy and with each, its name, and its cells by their headings. The best has
    a mark."""
    none, best = strategies["none", ""], best_schedule(strategies)
    return [
        (f"  + {policy}" if policy else spec + MARK * (spec == best), _cells(one, none))
        for (spec, policy), one in strategies.items()
    ]


def _cells(one: Counter[str], none: Counter[str]) -> dict[str, str]:
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
