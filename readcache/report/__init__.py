"""Reports for people: totals over time, a session as a page, and replays of recorded conversations."""

from __future__ import annotations

DIMENSIONS = ("day", "host", "tool", "reason", "session")  # of the rows of `readcache gain`
# The counters of `Session.stats` that are numbers of calls, characters and tokens. The other counters are reasons.
COUNTERS = {
    "calls": "calls that were answered",
    "output_chars": "characters that they printed, if the harness shows them",
    "shown_chars": "characters shown of these outputs, including markers",
    "tokens_saved": "tokens saved, minus the markers and the bounces",
    "bounces": "omissions whose bytes, and not mostly others, were requested again",
    "tokens_bounced": "tokens of these omissions, which no longer count as saved",
    "removed_chars": "shown characters that left the conversation later: pruned, cleared, truncated or compacted",
    "reread_calls": "calls that read text again within 20 calls after it left the conversation",
    "reread_answered": "calls among these that a restored section answered",
    "turns_avoided": "writes of restored files that were not read again before",
    "cache_writes": "prompt caches that only a repaired marker broke",
    "missed": "tool results that were not judged and were shown unchanged",
    "tokens_saved_if_on": "tokens that would have been saved if readcache did more than advise",
}


def share(part: float, total_of: float) -> str:
    """Return the share as per cent; "n/a" if the total is 0."""
    return f"{100 * part / total_of:.1f} %" if total_of else "n/a"


def many(count: int, what: str) -> str:
    """Return the number and the noun, in the plural if needed."""
    many = what if count == 1 else what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f"{count:,} {many}"


def bars_caption(what: str, longest: str) -> str:
    """Return the caption of bars that have one scale. `longest`: the value of the longest bar."""
    return f"Bars: {what}. Longest: {longest}."


def dollars(millionths: float) -> str:
    """Return the amount, in millionths of a dollar, as dollars."""
    return f"${millionths / 1e6:,.2f}"
