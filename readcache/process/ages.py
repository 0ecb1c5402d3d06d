"""Parse ages and dates, as people write them on a command line."""

from __future__ import annotations

import datetime
import re

from readcache.core.model.errors import UsageError

_AGE = re.compile(r"(\d+)([hdw])")
_DAY = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)")  # ccusage accepts dates without dashes, Python 3.10 does not
_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}


def age_seconds(age: str, what: str) -> float:
    """Return the seconds of an age (36h, 7d, 2w). Raise UsageError for anything else; the error names `what`, its
    origin."""
    if found := _AGE.fullmatch(age):
        return float(found[1]) * _SECONDS[found[2]]
    raise UsageError(f"invalid {what} {age!r} (examples: 36h, 7d, 2w)")


def seconds_of(moment: str, now: float, what: str, *, is_end: bool = False) -> float:
    """Return the seconds since the epoch of a date, or of an age before `now` (36h, 7d, 2w).

    A date may have a time (2026-11-01, 2026-11-01T12:00). `is_end`: a date without a time means the end of that day.
    Raise UsageError for anything else; the error names `what`, its origin.
    """
    if _AGE.fullmatch(moment):
        return now - age_seconds(moment, what)
    try:
        if day := _DAY.fullmatch(moment):
            year, month, number = map(int, day.groups())
            return (datetime.datetime(year, month, number) + datetime.timedelta(days=is_end)).timestamp()
        return datetime.datetime.fromisoformat(moment).timestamp()
    except ValueError:
        raise UsageError(f"{what} {moment!r} is neither a date (2026-11-01) nor an age (36h, 7d, 2w)") from None
