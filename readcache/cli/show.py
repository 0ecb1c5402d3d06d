"""`log`, `stats` and `watch`, and the opening of the session for them and for `explain`."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from readcache import Outcome, Reason, Session
from readcache.cli.output import NO_TERMINAL, clock, one_line, print_table, warn, width
from readcache.cli.sessions import recorded
from readcache.core.model.cursor import Cursor, NoSuchCall
from readcache.core.model.errors import ReadcacheError
from readcache.core.model.events import (
    Amended,
    Cleared,
    Compacted,
    Condensed,
    Delivered,
    Event,
    Failed,
    Forgot,
    Missed,
    Origin,
    Record,
    Wrote,
)
from readcache.core.model.plugins import how_to_add
from readcache.core.model.records import counter_of
from readcache.core.model.unconfirmed import as_counted, shown_chars
from readcache.log.store.protocol import without_password
from readcache.process.settings import Settings
from readcache.process.state import require_recorded
from readcache.report import COUNTERS

if TYPE_CHECKING:
    from rich.panel import Panel

LABEL_CHARS = 60  # characters of a command that are always shown
OTHER_CHARS = 100  # characters of a line without the command
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
    with Session(os.getcwd(), session_id=session_id, agent_id=settings.agent, store=spec, local=True) as session:
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


def _newest(spec: str) -> str:
    newest_first = recorded(spec)
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
        counts = {**dict.fromkeys(COUNTERS, 0), **cursor.view.calls.counts}
    if options.json:
        print(json.dumps({"session": session.session_id, "agent": session.agent_id, **counts}))
        return 0
    why = {reason.value: reason.why for reason in Reason}
    reasons = sorted((name for name in counts if name not in COUNTERS), key=lambda name: (-counts[name], name))
    rows = [(name, counts[name], COUNTERS[name]) for name in COUNTERS]
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
    if isinstance(event, Condensed):
        return "condensed", f"{len(event.data):,} chars stored", ""
    if isinstance(event, Compacted):
        return "compacted", f"{len(event.kept):,} calls kept", ""
    if isinstance(event, Forgot):
        return "forgot", f"{len(event.call_ids):,} calls", ""
    if isinstance(event, Missed):
        return "not judged", f"{event.count:,} results", event.why
    if isinstance(event, Failed):
        return f"failed/{event.cause}", "", event.detail
    return type(event).__name__.lower(), "", ""  # `Rewound`


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
        raise ReadcacheError(f"`readcache watch` needs rich: {how_to_add('watch')}") from None
    spec = settings.store_spec()
    require_recorded(spec)
    seen: tuple[str, str, int, float] | None = None
    with suppress(KeyboardInterrupt), Live(auto_refresh=False) as live:
        while True:
            found = recorded(spec, options.session, options.agent)
            if not found:
                raise ReadcacheError("no such session or agent was recorded: see `readcache sessions`")
            if found[0] != seen:
                seen = found[0]
                with open_recorded(settings._replace(session=seen[0], agent=seen[1])) as (session, cursor):
                    live.update(watched(cursor, session.session_id, live.console.size.height), refresh=True)
            time.sleep(SECONDS)
    return 0


def watched(cursor: Cursor, session: str, height: int) -> Panel:
    """Return a panel with the session's newest events, as many as fit into `height` lines. Its title has the sums for
    the cursor's reader."""
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    counts = cursor.view.calls.counts
    in_view = counter_of(cursor.past, cursor.agent_id).of_chars(cursor.view.carried)
    table = Table(box=None, expand=True, header_style="bold")
    for name, ratio in (("time", None), ("reader", None), ("what", None), ("characters", None), ("of", 1)):
        table.add_column(name, ratio=ratio, no_wrap=True, overflow="ellipsis")
    for record in cursor.past[-max(1, height - ABOVE_AND_BELOW) :]:
        when, reader, _, what, size, label = row(record)
        style = "green" if "saved" in size else "red" if what.startswith("failed") else ""
        table.add_row(when.partition(" ")[2], reader, what, size, Text(label), style=style)
    sums = f"{counts['calls']:,} calls, {counts['tokens_saved']:,} tokens omitted, {counts['bounces']:,} asked again"
    title = Text(
        f"{one_line(session)}, {one_line(cursor.agent_id)}: {sums}; about {in_view:,} tokens of results in view"
    )
    return Panel(table, title=title)
