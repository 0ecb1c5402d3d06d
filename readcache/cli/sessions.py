"""`sessions` and `clear`: list the sessions in the store, and delete them. `contexts`: the newest readers in it."""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

from readcache.core.model.errors import ReadcacheError, StoreError, UsageError
from readcache.process.settings import Settings
from readcache.process.state import is_missing, require_recorded
from readcache.process.tidy import seconds_of
from readcache.report import many

if TYPE_CHECKING:
    from readcache.log.store import Store
    from readcache.log.store.redis import RedisStore
    from readcache.log.store.sqlite import SqliteStore

    Kept = SqliteStore | RedisStore

_CHOOSE = "give the IDs of sessions, --older-than WHEN, or --all --yes"


def contexts(store: Store, session: str | None = None, agent: str | None = None) -> list[tuple[str, str, int, float]]:
    """Return `Store.sessions`, the newest first. `session`, `agent`: return only these; None: all."""
    found = [each for each in store.sessions() if session in (None, each[0]) and agent in (None, each[1])]
    return sorted(found, key=lambda each: each[3], reverse=True)


def recorded(spec: str, session: str | None = None, agent: str | None = None) -> list[tuple[str, str, int, float]]:
    """Return the `contexts` in the store at `spec`, or an empty list if it does not exist yet."""
    if is_missing(spec):
        return []
    from readcache.log.store import open_store

    with closing(open_store(spec)) as store:
        return contexts(store, session, agent)


def sessions_command(options: argparse.Namespace, settings: Settings) -> int:
    """Print a line for each session, newest last, or one JSON object. Return 0."""
    from readcache.cli.output import NO_TERMINAL, clock, print_table, width
    from readcache.log.retention import has_content, last_events

    with _opened(settings) as store:
        readers, size = list(store.sessions()), store.used_bytes()
        last = {name: at for name, at in last_events(readers).items() if has_content(store, name)}
    rows: list[dict[str, Any]] = [
        {
            "session": name,
            "readers": sum(each[0] == name for each in readers),
            "events": sum(each[2] for each in readers if each[0] == name),
            "last": at,
        }
        for name, at in last.items()
    ]
    if options.json:
        print(json.dumps({"store": store.path, "bytes": size, "sessions": rows}))
        return 0
    print_table(
        [(clock(row["last"]), row["readers"], row["events"], row["session"]) for row in rows],
        width(NO_TERMINAL),
        heading=("last event", "readers", "events", "session"),
    )
    return 0


def clear_command(options: argparse.Namespace, settings: Settings) -> int:
    """Delete sessions: by ID, by age, or all after a yes. Return 1 if the answer was no.

    Raise UsageError if nobody can be asked. Raise ReadcacheError if a named session is not in the store. In both cases,
    delete nothing.
    """
    from readcache.cli.output import is_agreed, say
    from readcache.log.retention import has_content, last_events

    named = [*options.sessions, *([options.session] if options.session else [])]
    is_some = bool(named or options.older_than)
    if options.all and is_some:
        raise UsageError("clear takes --all, or sessions and --older-than, not both")
    before = seconds_of(options.older_than, time.time(), "--older-than") if options.older_than else float("inf")
    with _opened(settings) as store:
        last = last_events(store.sessions())
        if unknown := [name for name in named if name not in last]:
            raise ReadcacheError(f"no session {unknown[0]} in {store.path}: see `readcache sessions`")
        chosen = [name for name, at in last.items() if at < before and (name in named or not named)]
        non_empty = [name for name in chosen if has_content(store, name)]
        is_confirmed = is_some or options.dry_run or (options.all and options.yes)
        if not is_confirmed and not is_agreed(f"Delete all sessions ({len(non_empty)}) in {store.path}?", _CHOOSE):
            say("nothing was deleted")
            return 1
        if not options.dry_run:
            for name in chosen:
                store.take_out(name, time.time())
            with contextlib.suppress(StoreError):  # another process uses the store, so later events reuse the space
                store.give_back_room()
        size = store.used_bytes()
    for name in non_empty if options.dry_run else ():
        say(f"would delete {name}")
    done = "would delete" if options.dry_run else "deleted"
    say(f"{done} {many(len(non_empty), 'session')}; {store.path} holds {size:,} bytes")
    return 0


@contextlib.contextmanager
def _opened(settings: Settings) -> Iterator[Kept]:
    """Yield the store. Raise ReadcacheError if there is none."""
    from readcache.log.store import open_store

    spec = settings.store_spec()
    require_recorded(spec)
    with closing(open_store(spec)) as store:
        yield cast("Kept", store)
