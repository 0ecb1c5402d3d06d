"""`readcache watch`: what a running agent reads, what was left out and why, and how much of it is in view."""

from __future__ import annotations

import argparse
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from readcache.cli.output import one_line
from readcache.cli.show import open_recorded, recorded, row
from readcache.core.model.cursor import Cursor
from readcache.core.model.errors import ReadcacheError
from readcache.core.model.policy import CHARS_PER_TOKEN
from readcache.process.settings import Settings
from readcache.process.state import require_recorded

if TYPE_CHECKING:
    from rich.panel import Panel

SECONDS = 0.5  # between two looks at the store
ABOVE_AND_BELOW = 4  # lines of the terminal that are not rows of the table


def watch_command(options: argparse.Namespace, settings: Settings) -> int:
    """Shows the named session, or whichever is the newest, until Ctrl-C. ReadcacheError."""
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
    """The session's newest events, as many as there is room for, below what adds up for the cursor's reader."""
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
