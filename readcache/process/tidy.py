"""Ages and dates as people write them, and the daily expiry of sessions in the stores that the user did not name.

Another store is its owner's to clear. A shim's process ends with this, so almost nothing is imported if today's expiry
is done.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Mapping

from readcache.core.model.errors import UsageError
from readcache.process.settings import Settings
from readcache.process.state import is_unnamed, state_directory, store_file, unnamed_stores

_AGE = re.compile(r"(\d+)([hdw])")
_DAY = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)")  # ccusage takes it without dashes, and Python 3.10 does not
_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}
KEEP = "READCACHE_KEEP"
FOREVER = "forever"
DAY = 86_400
PATIENCE = 0.2  # seconds, after which a command removes no more sessions
RESUME_SECONDS = 60  # until the next try, if that time was not enough
SCRUBBED_AT_ONCE = 300_000  # bytes of stores; a search takes 70 ns a character; larger ones get a process of their own


def age_seconds(age: str, what: str) -> float:
    """Return the seconds of an age (36h, 7d, 2w). Raise UsageError for anything else. `what`: the name of the option or
    variable, for the error."""
    if found := _AGE.fullmatch(age):
        return float(found[1]) * _SECONDS[found[2]]
    raise UsageError(f"invalid {what} {age!r} (examples: 36h, 7d, 2w)")


def seconds_of(moment: str, now: float, what: str, *, is_end: bool = False) -> float:
    """Return the seconds since the epoch of a date (2026-11-01, with or without a time) or of an age before `now` (36h,
    7d, 2w). `is_end`: a date without a time means its end. Raise UsageError for anything else. `what`: as for
    `age_seconds`."""
    import datetime

    if _AGE.fullmatch(moment):
        return now - age_seconds(moment, what)
    try:
        if day := _DAY.fullmatch(moment):
            year, month, number = map(int, day.groups())
            return (datetime.datetime(year, month, number) + datetime.timedelta(days=is_end)).timestamp()
        return datetime.datetime.fromisoformat(moment).timestamp()
    except ValueError:
        raise UsageError(f"{what} {moment!r} is neither a date (2026-11-01) nor an age (36h, 7d, 2w)") from None


def kept_seconds(env: Mapping[str, str]) -> float | None:
    """Return for how many seconds a session is kept after its last event; None if it is kept always. Raise UsageError
    for an invalid value."""
    given = env.get(KEEP, "")
    if given == FOREVER:
        return None
    from readcache.log.retention import KEEP_SECONDS

    return age_seconds(given, KEEP) if given else KEEP_SECONDS


def tidy_once_a_day(settings: Settings) -> None:
    """Delete sessions that were kept long enough, and texts that this version would not store. Never raise an error."""
    with contextlib.suppress(Exception):
        if not is_unnamed(settings.store):
            return
        now, stamp = time.time(), os.path.join(state_directory(), "tidied")
        if not _is_due(stamp, now):
            return
        keep, paths = kept_seconds(os.environ), [path for path in unnamed_stores() if os.path.exists(path)]
        if not paths:
            return
        os.close(os.open(stamp, os.O_WRONLY | os.O_CREAT, 0o600))
        os.utime(stamp, (now, now))  # before the work, so that no other process does the same
        from readcache.log.retention import tidy
        from readcache.log.store.sqlite import SqliteStore

        for path in paths:
            with contextlib.suppress(Exception), contextlib.closing(SqliteStore(path)) as store:
                if keep is not None and not tidy(store, now, keep, patience=PATIENCE):
                    os.utime(stamp, (now, now - DAY + RESUME_SECONDS))
        _scrub_after_upgrade(settings, paths)


def _scrub_after_upgrade(settings: Settings, paths: list[str]) -> None:
    """Remove from the stores what this version would not store, unless that was done for its rules."""
    if os.path.exists(_scrubbed_stamp()):
        return
    files = (name for path in paths for name in (path, f"{path}-wal") if os.path.exists(name))
    if sum(map(os.path.getsize, files)) > SCRUBBED_AT_ONCE:
        import subprocess

        env = {**os.environ, "READCACHE_STORE": "", "READCACHE_PROTECTED": settings.protected}
        nothing, isolated = subprocess.DEVNULL, ["-I"] if sys.flags.isolated else []
        words = [sys.executable, *isolated, "-m", "readcache", "doctor", "--scrub"]
        subprocess.Popen(words, cwd="/", env=env, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
        return
    from readcache.core.model.policy import Policy
    from readcache.log.scrub import scrub_all
    from readcache.log.store.sqlite import SqliteStore

    for path in paths:
        with contextlib.closing(SqliteStore(path)) as store:
            scrub_all(store, Policy().protecting(settings.protected))
    note_scrubbed()


def note_scrubbed() -> None:
    """Note that the stores that the user did not name were searched for everything that the rules know."""
    os.close(os.open(_scrubbed_stamp(), os.O_WRONLY | os.O_CREAT, 0o600))


def _scrubbed_stamp() -> str:
    from readcache.core.judging.removal import RULES

    return os.path.join(state_directory(), f"scrubbed-{RULES}")


def _is_due(stamp: str, now: float) -> bool:
    try:
        return abs(now - os.stat(stamp).st_mtime) > DAY  # a clock that was set back must not stop it
    except FileNotFoundError:
        return True


def what_is_kept(settings: Settings) -> str:
    """Return one line: which data of a user is kept, where, for how long, and how to delete it. Raise UsageError
    if that is unknown: for an invalid `KEEP`, and without a home directory."""
    from readcache.log.store.protocol import without_password

    spec, how_long = settings.store_spec(), "with no time limit"
    address = store_file(spec)
    keep = kept_seconds(os.environ) if is_unnamed(settings.store) else None
    if address is None:
        address, how_long = without_password(spec), "for as long as that store's URL says (expire=DAYS)"
    elif keep is not None:
        how_long = f"for {keep / DAY:g} days after a session's last call"
    return f"what agents are shown, but not protected files, in {address}, {how_long}; `readcache clear` deletes it"
