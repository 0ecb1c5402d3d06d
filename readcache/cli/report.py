"""`report [SESSION_OR_FILE] [-o out.html]`: a session as one page, from the store or from a transcript."""

from __future__ import annotations

import argparse
import os
import sys
from urllib.parse import quote

from readcache.cli.output import warn, write_html
from readcache.cli.show import open_recorded
from readcache.core.model.errors import ReadcacheError, UsageError
from readcache.core.model.events import Record
from readcache.core.model.policy import Policy
from readcache.process.settings import Settings
from readcache.process.state import state_directory

# How many conversations an error names when it cannot find the one asked for.
MOST_NAMED = 5


def report_command(options: argparse.Namespace, settings: Settings) -> int:
    """Makes the page."""
    from readcache.report.page.page import write_page

    source, agent = options.source or "", options.agent or ""
    if source and os.path.exists(source):
        # the environment names the caller's session, which is not in the file
        title, about, records = _from_file(source, options.session or "", settings.policy)
    else:
        title, about, records = _from_store(settings, source)
    if not any(agent in ("", record.agent_id) for record in records):
        raise ReadcacheError(f"{title}: nothing recorded" + (f" for agent {agent}" if agent else ""))
    output = options.output or os.path.join(state_directory(), "report.html")
    if not options.output:
        os.makedirs(state_directory(), mode=0o700, exist_ok=True)
    write_html(output, lambda write: write_page(records, title, about, write, agent), "; it holds what the agent saw")
    if not options.output and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(f"file://{quote(output)}")
    return 0


def _from_store(settings: Settings, source: str) -> tuple[str, dict[str, str], list[Record]]:
    if os.sep in source:
        raise UsageError(f"{source} does not exist: give a transcript, or the id of a session in the store")
    with open_recorded(settings._replace(session=source or settings.session)) as (session, cursor):
        return f"Session {session.session_id}", {"store": settings.store_spec()}, list(cursor.past)


def _from_file(source: str, name: str, preset: str) -> tuple[str, dict[str, str], list[Record]]:
    """The conversation of that name; without one, the longest."""
    from readcache.report.replay.replayed_session import conversations_in, replayed_session

    policy = Policy.named(preset)
    found = conversations_in(source)
    if not found:
        raise ReadcacheError(f"no conversation found in {source}")
    names = {readers[0].name: readers for readers in found}
    if name and name not in names:
        raise ReadcacheError(f"{source} has no conversation {name}; it has {', '.join(list(names)[-MOST_NAMED:])}")
    longest = max(found, key=lambda readers: sum(len(recording.items) for recording in readers))
    readers = names.get(name, longest)
    if len(found) > 1 and not name:
        warn(f"{readers[0].name}, the longest of {len(found)} conversations in {source}; name another with --session")
    about = {"transcript": os.path.basename(source), "format": readers[0].form, "policy": preset}
    return f"Replay of {readers[0].name}", about, replayed_session(readers, policy).events()
