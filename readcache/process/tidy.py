"""Expire sessions daily in the stores that the user did not name. Other stores are cleared by their owners.

A shim's process ends with this, so almost nothing is imported if today's expiry is done.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping

from readcache.process.settings import Settings
from readcache.process.state import is_unnamed, state_directory, unnamed_stores

KEEP = "READCACHE_KEEP"
FOREVER = "forever"
DAY = 86_400
PATIENCE = 0.2  # seconds: the longest delay of a command
RESUME_SECONDS = 60  # until the next try, if that time was not enough


def kept_seconds(env: Mapping[str, str]) -> float | None:
    """Return for how many seconds a session is kept after its last event; None if it is kept always. Raise UsageError
    for an invalid value."""
    given = env.get(KEEP, "")
    if given == FOREVER:
        return None
    from readcache.log.retention import KEEP_SECONDS
    from readcache.process.ages import age_seconds

    return age_seconds(given, KEEP) if given else KEEP_SECONDS


def tidy_once_a_day(settings: Settings) -> None:
    """Delete sessions that were kept long enough. Never raise an error."""
    with contextlib.suppress(Exception):
        if not is_unnamed(settings.store):
            return
        now, stamp = time.time(), os.path.join(state_directory(), "tidied")
        if not _is_due(stamp, now):
            return
        keep, paths = kept_seconds(os.environ), [path for path in unnamed_stores() if os.path.exists(path)]
        if keep is None or not paths:
            return
        os.close(os.open(stamp, os.O_WRONLY | os.O_CREAT, 0o600))
        os.utime(stamp, (now, now))  # before the work, so that no other process does the same
        from readcache.log.retention import tidy
        from readcache.log.store.sqlite import SqliteStore

        for path in paths:
            with contextlib.suppress(Exception), contextlib.closing(SqliteStore(path)) as store:
                if not tidy(store, now, keep, patience=PATIENCE):
                    os.utime(stamp, (now, now - DAY + RESUME_SECONDS))


def _is_due(stamp: str, now: float) -> bool:
    try:
        return abs(now - os.stat(stamp).st_mtime) > DAY  # a clock that was set back must not stop it
    except FileNotFoundError:
        return True
