"""`init`, `uninit` and what `doctor` says of hosts: a host's settings are changed, and what is changed is printed."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Sequence

from readcache.cli.client import find_client
from readcache.cli.kept import what_is_kept
from readcache.cli.options import HOST_OPTIONS
from readcache.cli.terminal import say
from readcache.hosts import MODULES, find_host
from readcache.hosts.hooks import python_program
from readcache.hosts.host import Host, Where
from readcache.hosts.settings_files.switch import Switch
from readcache.model.errors import UsageError
from readcache.model.plugins import plugin_names
from readcache.model.policy import Policy
from readcache.process.settings import Settings
from readcache.process.state import state_directory


def init_command(options: argparse.Namespace, settings: Settings) -> int:
    """Switches a host on, or changes how it is. ReadcacheError."""
    host = find_host(options.host)
    mode = "off" if options.off else "advise" if options.advise else "on" if options.on else host.mode
    Policy.named(options.policy or "default").restoring(options.restore or "")
    given = {name: value for name in HOST_OPTIONS if (value := getattr(options, name))}
    where = _where(host, is_user=options.user, mode=mode)._replace(**given)
    switch = Switch(host, where, _memory())
    changes = switch.plan_on()
    for change in changes:
        print(change.diff(), end="")
    if not options.dry_run:
        switch.write(changes)
    why = host.why if mode == host.mode else "as requested"
    done = "already " if not changes else "would be " if options.dry_run else ""
    say(f"{host.name}: {done}{mode} ({why})")
    if mode != "off":
        say(f"kept: {what_is_kept(settings) if host.keeps else 'nothing after a run'}")
    return 0


def uninit_command(options: argparse.Namespace, _: Settings) -> int:
    """Takes out of a host's settings what is ours. ReadcacheError."""
    host = find_host(options.host)
    switch = Switch(host, _where(host, is_user=options.user), _memory())
    changes = switch.plan_off()
    for change in changes:
        print(change.diff(), end="")
    if not options.dry_run:
        switch.write(changes)
    say(f"{host.name}: {'already removed' if not changes else 'would be removed' if options.dry_run else 'removed'}")
    if changes and not options.dry_run and not _is_any_remembered():
        state = state_directory()
        with contextlib.suppress(OSError):  # something else is in it
            os.rmdir(state)
        if os.path.exists(state):
            left = ", ".join(sorted(os.listdir(state)))
            say(f"{state} still has {left}; delete it if nothing else here uses readcache")
    return 0


def host_checks(names: Sequence[str]) -> list[tuple[str, Callable[[Settings], str]]]:
    """What `doctor` looks at: hosts that are switched on here or for the user, and those of that name in any case.
    UsageError for an unknown one."""
    from readcache.hosts.checks import check_host

    checks: list[tuple[str, Callable[[Settings], str]]] = []
    try:
        memory = _memory()
    except UsageError:  # without a home nothing was switched on
        return []
    for name in dict.fromkeys([*names, *MODULES, *plugin_names("hosts")]):
        host = find_host(name)
        places = [_where(host, is_user=is_user) for is_user in (False, True)]
        found = [place for place in places if Switch(host, place, memory).is_known()]
        for place in found or (places[:1] if name in names else []):
            checks.append((name, lambda _, host=host, place=place: check_host(host, place, memory)))  # type: ignore[misc]
    return checks


def _where(host: Host, *, is_user: bool, mode: str = "") -> Where:
    """This directory's project, or all of the user's."""
    home = os.path.expanduser("~")
    program, client = python_program(), find_client()
    return Where(os.getcwd(), home, is_user, program, mode or host.mode, "default", dict(os.environ), client)


def _is_any_remembered() -> bool:
    """False where no host is switched on any more; then the directory is gone that remembered it."""
    with contextlib.suppress(FileNotFoundError):
        if os.listdir(_memory()):
            return True
        os.rmdir(_memory())
    return False


def _memory() -> str:
    return os.path.join(state_directory(), "hosts")
