"""What to switch on, in at most three sentences with money or shares, each with the line that does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from readcache.report.replay.conversations import parse_strategy
from readcache.report.replay.replay_totals import ReplayTotals, ranked

MOST_MISSED = 0.05  # of the needs: a way that takes more from the agent is not recommended
_INIT = ("claude-code", "codex", "gemini", "mini-swe-agent", "opencode", "pi")  # `readcache init` knows them
_LINES = {
    "clear": "messages = clear(messages, session, above={}, down_to={})",
    "compact": "Compactor(session, summarize, trigger_tokens={})",
    "edit": 'context_management={{"edits": [{{"type": "clear_tool_uses_20250919"}}]}}',
}


def verdict(total: ReplayTotals, policies: Sequence[str]) -> Iterator[str]:
    """The sentences. What is not known is not in them."""
    if total.counts["calls"]:
        yield _of_results(total, policies)
    if total.strategies:
        yield from _of_strategies(total, policies)


def share(part: float, total_of: float) -> str:
    """As per cent; unknown where there is nothing to have a share of."""
    return f"{part / total_of:.1%}".replace("%", " %") if total_of else "n/a"


def many(count: int, what: str) -> str:
    """So many of it."""
    many = what if count == 1 else what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f"{count:,} {many}"


def dollars(millionths: float) -> str:
    """As money."""
    return f"${millionths / 1e6:,.2f}"


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


def _of_strategies(total: ReplayTotals, policies: Sequence[str]) -> Iterator[str]:
    recorded = total.strategies["recorded"]
    fair = {spec: counts for spec, counts in total.strategies.items() if _is_fair(spec, counts, recorded)}
    if not fair:
        yield "No other way of keeping the conversations costs less without taking much from the agent."
        return
    best = min(fair, key=lambda spec: fair[spec]["bill"])
    strategy, kept = parse_strategy(best), many(recorded["sessions"], "conversation")
    line = _LINES[strategy.kind].format(f"{strategy.above:_}", f"{strategy.down_to:_}")
    yield f"{kept} kept as {best} would have cost {_less(fair[best], recorded)}:\n  {line}"
    pairs = {name: total.together[best][name] for name in policies}
    name = min(pairs, key=lambda name: pairs[name]["bill"])
    if _is_fair(best, pairs[name], recorded) and pairs[name]["bill"] < fair[best]["bill"]:
        line = f'session = Session(policy=Policy.named("{name}"))'
        yield f"Both together, {best} with {name}, would have cost {_less(pairs[name], recorded)}:\n  {line}"


def _is_fair(spec: str, counts: Counter[str], recorded: Counter[str]) -> bool:
    is_used = parse_strategy(spec).kind in _LINES and counts["shortened"]
    return bool(is_used and counts["missed"] <= MOST_MISSED * counts["needs"] and counts["bill"] < recorded["bill"])


def _less(counts: Counter[str], recorded: Counter[str]) -> str:
    """Than what the host did."""
    less = share(recorded["bill"] - counts["bill"], recorded["bill"])
    money = f" ({dollars(recorded['money'] - counts['money'])})" if recorded["money"] else ""
    gone = f", with {share(counts['missed'], counts['needs'])} of what edits needed gone" if counts["needs"] else ""
    return f"{less} less{money}{gone}"
