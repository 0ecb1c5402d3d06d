"""`off` and `on`, and where things stand: what `readcache` alone prints."""

from __future__ import annotations

import argparse
import contextlib
import os

from readcache import __version__
from readcache.cli.output import say
from readcache.core.model.errors import ReadcacheError
from readcache.process.settings import Settings
from readcache.process.state import is_off, off_file

PAUSED = "off (`readcache off`): everything is shown; `readcache on` switches it on again"


def off_command(_: argparse.Namespace, __: Settings) -> int:
    """Nothing is omitted from now on, in processes that run already too. ReadcacheError."""
    path = off_file()
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        raise ReadcacheError(f"cannot write {path}: {error.strerror}; set READCACHE=off instead") from None
    say(PAUSED)
    return 0


def on_command(_: argparse.Namespace, __: Settings) -> int:
    """The end of `off`. ReadcacheError."""
    was_off, path = is_off(), off_file()
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    except OSError as error:
        raise ReadcacheError(f"cannot remove {path}: {error.strerror}; remove it yourself") from None
    say("on again; what was shown meanwhile will be shown again" if was_off else "on already")
    return 0


def say_status(settings: Settings) -> int:
    """On or off, the hosts, the last session, and what to do next. ReadcacheError."""
    from readcache.cli.coverage import coverage_lines
    from readcache.cli.hosts import memory, switched_on
    from readcache.cli.show import clock, recorded
    from readcache.hosts.settings_files.switch import Switch

    hosts = [
        f"{host.name} {Switch(host, target, memory()).as_remembered().mode} ({target.scope_option()})"
        for host, target in switched_on()
    ]
    contexts = recorded(settings.store_spec())
    say(f"readcache {__version__}: {PAUSED if is_off() else settings.mode}")
    say(f"hosts: {', '.join(hosts) or 'none is switched on here, or for all of your projects'}")
    if contexts:
        name, _, _, at = max(contexts, key=lambda context: context[3])
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
