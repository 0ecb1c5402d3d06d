"""`init`, and what `doctor` says of hosts: a host's settings are changed, and each change is printed."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial

from readcache.cli.client import find_client
from readcache.cli.options import HOST_OPTIONS
from readcache.cli.output import say, warn
from readcache.cli.transcript_files import what_is_kept
from readcache.core.model.errors import UsageError
from readcache.core.model.plugins import plugin_names
from readcache.core.model.policy import Policy
from readcache.hosts import MODULES, find_host
from readcache.hosts.hooks import python_program
from readcache.hosts.host import Host, InstallTarget
from readcache.hosts.settings_files.files import FileChange
from readcache.hosts.settings_files.switch import Switch, remembered_installs
from readcache.process.settings import Settings
from readcache.process.state import state_directory

MOST_LINES = 60  # of a new file that are printed, if it is not a dry run
SHARED = ("readcache",)  # the program, in settings that others use too


def init_command(options: argparse.Namespace, settings: Settings) -> int:
    """Switches a host on, or changes how it is. ReadcacheError."""
    host = find_host(options.host)
    mode = "off" if options.off else "advise" if options.advise else "on" if options.on else host.mode
    Policy.named(options.policy or "default").restoring(options.restore or "")
    given = {name: value for name in HOST_OPTIONS if (value := getattr(options, name))}
    target = install_target_here(host, is_user=not options.project, mode=mode)._replace(**given)
    limit = host.only_advises(target) if mode == "on" else None
    mode = "advise" if limit else mode
    target = target._replace(mode=mode)
    switch = Switch(host, target, memory())
    changes = switch.plan_on()
    make_changes(switch, changes, is_dry=options.dry_run)
    why = limit or (host.why if mode == host.mode else "as requested")
    done = "already " if not changes else "would be " if options.dry_run else ""
    say(f"{host.name}: {done}{mode} ({why})")
    if mode == "off":
        return 0
    if way := host.second_best(target):
        say(f"way: {way}")
    say(f"next: {host.todo(target)}")
    if target.program == SHARED and host.keeps:  # mini-swe-agent's names no program
        say("shared: everyone who uses these settings needs `readcache` on PATH; without it they have no effect")
        if shutil.which(*SHARED) is None:
            say(f"missing: `readcache` is not on your PATH, so nothing is omitted yet: {_how_to_find_it()}")
    say(f"kept: {what_is_kept(settings) if host.keeps else 'nothing after a run'}")
    undo = f"readcache uninit {host.name}{'' if target.is_user else ' --project'}"
    say(f"look: `readcache doctor --host {host.name}`, and `readcache gain` after some calls; undo: `{undo}`")
    return 0


def _how_to_find_it() -> str:
    """Return what puts `readcache` on PATH."""
    beside = os.path.dirname(sys.executable)
    is_there = os.access(os.path.join(beside, *SHARED), os.X_OK)
    return f"add {beside} to PATH" if is_there else "install readcache so that it is on PATH"


def make_changes(switch: Switch, changes: Sequence[FileChange], *, is_dry: bool) -> None:
    """Prints them, and makes them. ReadcacheError."""
    for change in changes:
        lines = change.diff().splitlines(keepends=True)
        is_long = change.before is None and len(lines) > MOST_LINES and not is_dry
        print(f"+++ {change.path}: {len(lines):,} lines, all ours\n" if is_long else "".join(lines), end="")
    if not is_dry:
        switch.write(changes)


def host_checks(names: Sequence[str], *, fires: bool) -> list[tuple[str, Callable[[Settings], str]]]:
    """What `doctor` looks at: the hosts of these names; without names those that are switched on here or for the user.
    `fires`: also how each hook was tried, and whether its answers are proven to reach the model. UsageError for an
    unknown one."""
    from readcache.hosts.checks import check_host

    def check(host: Host, target: InstallTarget, settings: Settings) -> str:
        def proof(found: InstallTarget) -> str:
            from readcache.cli.firing import SECONDS, say_proof

            warn(f"running {host.name} once with a scripted model (at most {SECONDS:.0f} seconds)")
            return f"the model's copy: {say_proof(host, found, settings)}"

        return check_host(host, target, memory(), proof if fires else None)

    found = [pair for pair in switched_on() if not names or pair[0].name in names]
    for host in map(find_host, dict.fromkeys(names)):
        if host.name not in [known.name for known, _ in found]:
            found.append((host, install_target_here(host, is_user=True)))
    return [(host.name, partial(check, host, target)) for host, target in found]


def switched_on(*, everywhere: bool = False) -> list[tuple[Host, InstallTarget]]:
    """The hosts that are switched on here or for the user, and `everywhere` those of other projects that are
    remembered. None without a home directory."""
    try:
        known = remembered_installs(memory())
    except UsageError:  # without a home nothing was switched on
        return []
    here = [(name, os.getcwd(), is_user) for name in (*MODULES, *plugin_names("hosts")) for is_user in (True, False)]
    found = dict[tuple[str, str], tuple[Host, InstallTarget]]()
    for name, root, is_user in [*here, *(install for install in known if everywhere and install[1])]:
        host = find_host(name)
        target = install_target_here(host, is_user=is_user)._replace(root=root)
        if Switch(host, target, memory()).is_known():
            found[name, "" if is_user else root] = host, target
    return list(found.values())


def install_target_here(host: Host, *, is_user: bool, mode: str = "") -> InstallTarget:
    """All of the user's projects, or this directory's for all who work in it: no path of this machine is in that."""
    program, client = (python_program(), find_client()) if is_user else (SHARED, "")
    home = os.path.expanduser("~")
    return InstallTarget(os.getcwd(), home, is_user, program, mode or host.mode, "default", dict(os.environ), client)


def memory() -> str:
    """Where it is remembered what was switched on. UsageError."""
    return os.path.join(state_directory(), "hosts")
