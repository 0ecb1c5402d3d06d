"""`report [SESSION_OR_FILE] [-o out.html]`: a session as one page, from the store or from a transcript."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import quote

from readcache.cli.show import open_recorded
from readcache.cli.terminal import say, warn
from readcache.model.errors import ReadcacheError, UsageError
from readcache.model.events import Record
from readcache.model.policy import Policy
from readcache.process.settings import Settings
from readcache.process.state import state_directory

# What others may do with a page: it holds the contents of files.
MODE = 0o600
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
    _write_file(output, lambda write: write_page(records, title, about, write, agent))
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
    from readcache.replay.replayed_session import conversations_in, replayed_session

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


def _write_file(output: str, make: Callable[[Callable[[str], object]], None]) -> None:
    """The page to a file that this user alone may read, at once and whole; to stdout for `-`. UsageError where a file
    stands that is not a page of ours."""
    if output == "-":
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # the page says that it is
        make(sys.stdout.write)
        return
    target = os.path.realpath(output)
    if os.path.lexists(target) and not os.path.isfile(target):
        raise UsageError(f"{output} is not a file that can be written: give another one, or - for stdout")
    if os.path.exists(target) and not _is_page(target):
        raise UsageError(f"{output} exists and is not a page of `readcache report`: give another file, or remove it")
    try:
        handle, draft = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".readcache-", suffix=".html")
        try:
            with open(handle, "w", encoding="utf-8", newline="\n") as file:
                make(file.write)
            os.chmod(draft, MODE)
            os.replace(draft, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft)
            raise
    except OSError as error:
        raise ReadcacheError(f"cannot write {output}: {error.strerror or error}") from error
    say(f"{output}: {os.path.getsize(target) / 1e3:,.0f} kB, readable only by you; it holds what the agent saw")


def _is_page(path: str) -> bool:
    from readcache.report.page.page import BEGINNING

    with open(path, "rb") as file:
        return file.read(len(BEGINNING)) in (b"", BEGINNING.encode())
