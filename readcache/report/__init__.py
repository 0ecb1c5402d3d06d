"""Reports for people: totals over time, a session as a page, and replays of recorded conversations."""

from __future__ import annotations

DIMENSIONS = ("day", "host", "tool", "reason", "session")  # of the rows of `readcache gain`


def share(part: float, total_of: float) -> str:
    """Return the share as per cent; "n/a" if the total is 0."""
    return f"{100 * part / total_of:.1f} %" if total_of else "n/a"


def many(count: int, what: str) -> str:
    """Return the number and the noun, in the plural if needed."""
    many = what if count == 1 else what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f"{count:,} {many}"
