"""Reports for people: totals over time, a session as a page, and replays of recorded conversations."""

from __future__ import annotations

DIMENSIONS = ("day", "host", "tool", "reason", "session")  # of the rows of `readcache gain`
# The counters of `Session.stats` that are numbers of calls, characters and tokens. The other counters are reasons.
COUNTERS = {
    "calls": "calls that were answered",
    "output_chars": "characters that they printed, as far as the harness shows them",
    "shown_chars": "characters of that which were shown, markers included",
    "tokens_saved": "net of the markers' own, and of what bounced",
    "bounces": "omissions after which the same bytes were asked for again",
    "tokens_bounced": "saved by those, and not counted as saved any more",
    "removed_chars": "shown characters that left the conversation later: pruned, cleared, cut or compacted",
    "reread_calls": "calls that read again what had left the conversation, within 20 calls",
    "reread_answered": "those of them that a restored section answered",
    "turns_avoided": "writes of files that a restored section had put back, and that were not read again",
    "cache_writes": "prompt caches that a mended marker broke, and nothing else",
    "missed": "tool results that were not judged, and shown as they were",
    "tokens_saved_if_on": "would have been saved, had readcache not only advised",
}


def share(part: float, total_of: float) -> str:
    """Return the share as per cent; "n/a" if the total is 0."""
    return f"{100 * part / total_of:.1f} %" if total_of else "n/a"


def many(count: int, what: str) -> str:
    """Return the number and the noun, in the plural if needed."""
    many = what if count == 1 else what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f"{count:,} {many}"
