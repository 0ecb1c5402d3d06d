"""What to switch on, in at most three sentences with money or shares, each with the line that does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from readcache.replay.conversations import parse_way
from readcache.replay.tally import Tally, ranked

MOST_MISSED = 0.05  # of the needs: a way that takes more from the agent is not recommended
_INIT = ("claude-code", "codex", "gemini", "mini-swe-agent", "opencode")  # `readcache init` knows them
_LINES = {
    "clear": "messages = clear(messages, session, above={}, down_to={})",
    "compact": "Compactor(session, summarize, trigger_tokens={})",
}


def verdict(total: Tally, policies: Sequence[str]) -> Iterator[str]:
    """The sentences. What is not known is not in them."""
    if total.counts["calls"]:
        yield _of_results(total, policies)
    if total.ways:
        yield _of_ways(total.ways)


def share(part: float, whole: float) -> str:
    """As per cent; unknown where there is nothing to have a share of."""
    return f"{part / whole:.1%}".replace("%", " %") if whole else "n/a"


def many(count: int, what: str) -> str:
    """So many of it."""
    many = what if count == 1 else what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f"{count:,} {many}"


def dollars(millionths: float) -> str:
    """As money."""
    return f"${millionths / 1e6:,.2f}"


def _of_results(total: Tally, policies: Sequence[str]) -> str:
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


def _of_ways(ways: dict[str, Counter[str]]) -> str:
    recorded = ways["recorded"]
    fair = {
        spec: counts
        for spec, counts in ways.items()
        if parse_way(spec).kind in _LINES
        and counts["shortened"]
        and counts["missed"] <= MOST_MISSED * counts["needs"]
        and counts["bill"] < recorded["bill"]
    }
    if not fair:
        return "No other way of keeping the conversations costs less without taking much from the agent."
    best = min(fair, key=lambda spec: fair[spec]["bill"])
    counts, way = fair[best], parse_way(best)
    less = share(recorded["bill"] - counts["bill"], recorded["bill"])
    money = f" ({dollars(recorded['money'] - counts['money'])})" if recorded["money"] else ""
    gone = f", with {share(counts['missed'], counts['needs'])} of what edits needed gone" if counts["needs"] else ""
    line = _LINES[way.kind].format(f"{way.above:_}", f"{way.down_to:_}")
    return (
        f"{many(counts['sessions'], 'conversation')} kept as {best} would have cost {less} less{money}{gone}:\n  {line}"
    )
