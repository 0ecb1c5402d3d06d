"""`off` and `on`, and the current status, which `readcache` prints without a command: the mode, and the state of each
host."""

from __future__ import annotations

import argparse
import contextlib
import os
from contextlib import closing

from readcache import __version__
from readcache.cli.output import clock, say
from readcache.cli.sessions import contexts, recorded
from readcache.core.model.errors import ReadcacheError
from readcache.log.store import open_store
from readcache.process.settings import Settings
from readcache.process.state import is_missing, is_off, off_file
from readcache.report.answered import ReaderFold
from readcache.report.totals import ENOUGH, HostCoverage

_MOST_SESSIONS = 60  # newest sessions that are read; each takes some milliseconds
PAUSED = "off (`readcache off`): everything is shown; `readcache on` switches it on again"


def coverage(spec: str) -> list[HostCoverage]:
    """Return the coverage of each host, from as many of its newest sessions as have enough results together. Raise
    StoreError if the store cannot be read."""
    found = dict[str, HostCoverage]()
    if is_missing(spec):
        return []
    with closing(open_store(spec)) as store:
        for session, agent, *_ in contexts(store)[:_MOST_SESSIONS]:
            calls = ReaderFold(session, agent, None).take(store.records(session, agent))
            host = next((call.host for call in calls if call.host), "")
            known = found.setdefault(host, HostCoverage(host))
            if known.seen < ENOUGH:
                known.add(calls)
    return list(found.values())


def coverage_lines(spec: str) -> list[str]:
    """Return a line for each host in which results were not judged, or no marker reached the model. Raise StoreError if
    the store cannot be read."""
    return [line for host in coverage(spec) if (line := host.line())]


def check_coverage(settings: Settings) -> str:
    """Return a text with the number of newest results that were judged. Raise ReadcacheError if readcache does not work
    in a host."""
    found = coverage(settings.store_spec())
    if problems := [problem for host in found if (problem := host.problem())]:
        raise ReadcacheError("; ".join(problems))
    seen = ", ".join(f"{host.host or 'no host'}: {host.judged} of {host.seen}" for host in found)
    return f"judged of the newest: {seen}" if seen else "none yet"


def off_command(_: argparse.Namespace, __: Settings) -> int:
    """Stop all omissions from now on, also in running processes. Return 0. Raise ReadcacheError if that cannot be
    recorded."""
    path = off_file()
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        raise ReadcacheError(f"cannot write {path}: {error.strerror}; set READCACHE=off instead") from None
    say(PAUSED)
    return 0


def on_command(_: argparse.Namespace, __: Settings) -> int:
    """End the effect of `off`. Return 0. Raise ReadcacheError if the file cannot be removed."""
    was_off, path = is_off(), off_file()
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    except OSError as error:
        raise ReadcacheError(f"cannot remove {path}: {error.strerror}; remove it yourself") from None
    say("on again; what was shown meanwhile will be shown again" if was_off else "on already")
    return 0


def say_status(settings: Settings) -> int:
    """Print the mode, the hosts, the last session, and the next step. Return 0. Raise ReadcacheError if the store
    cannot be read."""
    from readcache.cli.hosts import memory, switched_on
    from readcache.hosts.settings_files.switch import Switch

    hosts = [
        f"{host.name} {Switch(host, target, memory()).as_remembered().mode} ({target.scope_option()})"
        for host, target in switched_on()
    ]
    say(f"readcache {__version__}: {PAUSED if is_off() else settings.mode}")
    say(f"hosts: {', '.join(hosts) or 'none is switched on here, or for all of your projects'}")
    if found := recorded(settings.store_spec()):
        name, _, _, at = found[0]
        say(f"last session: {name}, {clock(at)}; `readcache gain` says what was saved, `readcache report` shows it")
    else:
        say("last session: none yet")
    for line in coverage_lines(settings.store_spec()):
        say(f"results: {line}")
    if is_off():
        say("next: `readcache on`")
    elif not hosts:
        say("next: `readcache init HOST` switches an agent on; `readcache demo` shows what it is about")
    else:
        say("next: `readcache doctor` checks that all is in force; `readcache help` lists the commands")
    return 0
