"""`log`, `stats` and `watch`, and the opening of the session for them and for `explain`."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from readcache import Outcome, Reason, Session
from readcache.cli.output import NO_TERMINAL, one_line, print_table, warn, width
from readcache.core.model.cursor import Cursor, NoSuchCall
from readcache.core.model.errors import ReadcacheError
from readcache.core.model.events import (
    Amended,
    Cleared,
    Compacted,
    Delivered,
    Event,
    Failed,
    Forgot,
    Missed,
    Origin,
    Record,
    Wrote,
)
from readcache.core.model.policy import CHARS_PER_TOKEN
from readcache.core.model.unconfirmed import as_counted, shown_chars
from readcache.log.store.open import open_store, without_password
from readcache.process.settings import Settings
from readcache.process.state import is_missing, require_recorded

if TYPE_CHECKING:
    from rich.panel import Panel

LABEL_CHARS = 60  # characters of a command that are always shown
OTHER_CHARS = 100  # characters of a line without the command
_COUNTERS = {
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
SECONDS = 0.5  # between two checks of the store
ABOVE_AND_BELOW = 4  # lines of the terminal outside the table's rows


@contextmanager
def open_recorded(settings: Settings, at: str | None = None) -> Iterator[tuple[Session, Cursor]]:
    """Yield the named session, and a cursor at the end of its log, or right after the answer of the call `at`.

    If no session is named, yield the newest one in the store, and print a note on stderr. Raise ReadcacheError if there
    is no such store, session, agent or call.
    """
    spec = settings.store_spec()
    require_recorded(spec)
    session_id = settings.session or _newest(spec)
    with Session(os.getcwd(), session_id=session_id, agent_id=settings.agent, store=spec) as session:
        records = session.events()
        agents = sorted({record.agent_id for record in records})
        if not records:
            where = without_password(spec)
            raise ReadcacheError(f"no session {session_id} in {where}: see `readcache sessions`")
        if settings.agent not in agents:
            raise ReadcacheError(f"agent {settings.agent} has no events; agents with events: {', '.join(agents)}")
        cursor = Cursor(as_counted(records), settings.agent)
        try:
            cursor.after(at) if at else cursor.end()
        except NoSuchCall as error:
            raise ReadcacheError(f"--at: {error.args[0]}; see `readcache log`") from None
        yield session, cursor


def recorded(spec: str) -> list[tuple[str, str, int, float]]:
    """Return the contexts in the store at `spec`, as `Store.sessions`, or an empty list if it does not exist yet."""
    if is_missing(spec):
        return []
    with closing(open_store(spec)) as store:
        return list(store.sessions())


def _newest(spec: str) -> str:
    newest_first = sorted(recorded(spec), key=lambda context: context[3], reverse=True)
    if not newest_first:
        raise ReadcacheError(
            f"the store {without_password(spec)} is empty: run a command with `readcache run --session ID` first"
        )
    found = newest_first[0][0]
    count = len({context[0] for context in newest_first})
    which = "the only session" if count == 1 else f"the newest of {count} sessions"
    warn(f"session {found}, {which} in {without_password(spec)}")
    return found


def log_command(options: argparse.Namespace, settings: Settings) -> int:
    """Print the session's events, for all of its readers, oldest first. Return 0."""
    with open_recorded(settings, options.at) as (_, cursor):
        print_table(map(row, cursor.past), width(NO_TERMINAL))
    return 0


def stats_command(options: argparse.Namespace, settings: Settings) -> int:
    """Print the counters of one reader, as a table or as JSON. Return 0."""
    with open_recorded(settings, options.at) as (session, cursor):
        counts = {**dict.fromkeys(_COUNTERS, 0), **cursor.view.calls.counts}
    if options.json:
        print(json.dumps({"session": session.session_id, "agent": session.agent_id, **counts}))
        return 0
    why = {reason.value: reason.why for reason in Reason}
    reasons = sorted((name for name in counts if name not in _COUNTERS), key=lambda name: (-counts[name], name))
    rows = [(name, counts[name], _COUNTERS[name]) for name in _COUNTERS]
    rows += [(name, counts[name], why.get(name, "")) for name in reasons]
    print_table(rows, width(NO_TERMINAL))
    return 0


def row(record: Record) -> tuple[str, ...]:
    """Return the cells for one event: time, agent, call ID, what happened, how much, and the command or a detail."""
    return (clock(record.at), record.agent_id, call_of(record.event), *_describe(record.event))


def short(label: str) -> str:
    """Return the beginning of a command as one line. It is longer in a wide terminal."""
    label, most = one_line(" ".join(label.split())), max(LABEL_CHARS, width(0) - OTHER_CHARS)
    return label if len(label) <= most else label[: most - 1] + "…"


def clock(at: float) -> str:
    """Return the local time as text. `at`: seconds since the epoch."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def call_of(event: Event) -> str:
    """Return the event's call ID, or "-" if it has none."""
    return getattr(event, "call_id", "") or "-"


def _describe(event: Event) -> tuple[str, str, str]:
    """Return (what happened, how much, the command or a detail) for an event."""
    if isinstance(event, Delivered):
        return (*_delivered(event), short(event.label))
    if isinstance(event, Wrote):
        keys, more = (event.keys, "wrote") if event.keys else (event.possible_writes, "may have written")
        return more, short(", ".join(keys)), short(event.label)
    if isinstance(event, Amended):
        return "settled", f"{len(event.text):,} chars left", ""
    if isinstance(event, Cleared):
        return "cleared", f"{len(event.note):,} chars left", ""
    if isinstance(event, Compacted):
        return "compacted", f"{len(event.kept):,} calls kept", ""
    if isinstance(event, Forgot):
        return "forgot", f"{len(event.call_ids):,} calls", ""
    if isinstance(event, Missed):
        return "not judged", f"{event.count:,} results", event.why
    if isinstance(event, Failed):
        return f"failed/{event.cause}", "", event.detail
    return type(event).__name__.lower(), "", ""  # an event of a compactor


def _delivered(event: Delivered) -> tuple[str, str]:
    shown, account = f"{shown_chars(event):,} chars", event.account
    if account is None:
        return {Origin.COMMAND: "authored", Origin.RESTORED: "restored"}.get(event.origin, "inherited"), shown
    if account.outcome is not Outcome.FULL:
        shown += f", {account.output_chars - shown_chars(event):,} saved"
    return f"{account.outcome.value}/{account.reason.value}", shown


def watch_command(options: argparse.Namespace, settings: Settings) -> int:
    """Show the named session, or the one that is newest at the time, until Ctrl-C. Raise ReadcacheError if rich is not
    installed, or if no such session was recorded."""
    try:
        from rich.live import Live
    except ImportError:
        raise ReadcacheError("`readcache watch` needs rich: pip install 'readcache[watch]'") from None
    spec = settings.store_spec()
    require_recorded(spec)
    seen: tuple[str, str, int, float] | None = None
    with suppress(KeyboardInterrupt), Live(auto_refresh=False) as live:
        while True:
            contexts = [each for each in recorded(spec) if options.session in (None, each[0])]
            contexts = [each for each in contexts if options.agent in (None, each[1])]
            if not contexts:
                raise ReadcacheError("no such session or agent was recorded: see `readcache sessions`")
            newest = max(contexts, key=lambda each: each[3])
            if newest != seen:
                seen = newest
                with open_recorded(settings._replace(session=newest[0], agent=newest[1])) as (session, cursor):
                    live.update(watched(cursor, session.session_id, live.console.size.height), refresh=True)
            time.sleep(SECONDS)
    return 0


def watched(cursor: Cursor, session: str, height: int) -> Panel:
    """Return a panel with the session's newest events, as many as fit into `height` lines. Its title has the sums for
    the cursor's reader."""
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    counts, visible = cursor.view.calls.counts, cursor.view.deliveries
    in_view = sum(len(delivery.event.text) for delivery in visible) // CHARS_PER_TOKEN
    table = Table(box=None, expand=True, header_style="bold")
    for name, ratio in (("time", None), ("reader", None), ("what", None), ("characters", None), ("of", 1)):
        table.add_column(name, ratio=ratio, no_wrap=True, overflow="ellipsis")
    for record in cursor.past[-max(1, height - ABOVE_AND_BELOW) :]:
        when, reader, _, what, size, label = row(record)
        style = "green" if "saved" in size else "red" if what.startswith("failed") else ""
        table.add_row(when.partition(" ")[2], reader, what, size, Text(label), style=style)
    sums = f"{counts['calls']:,} calls, {counts['tokens_saved']:,} tokens saved, {counts['bounces']:,} asked again"
    title = Text(
        f"{one_line(session)}, {one_line(cursor.agent_id)}: {sums}; about {in_view:,} tokens of results in view"
    )
    return Panel(table, title=title)
