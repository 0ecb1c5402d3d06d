"""`init`, and what `doctor` says of hosts: a host's settings are changed, and each change is printed."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from functools import partial

from readcache.cli.client import find_client
from readcache.cli.kept import what_is_kept
from readcache.cli.options import HOST_OPTIONS
from readcache.cli.terminal import say
from readcache.hosts import MODULES, find_host
from readcache.hosts.hooks import python_program
from readcache.hosts.host import Host, Where
from readcache.hosts.settings_files.switch import Switch, remembered_places
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
    where = where_here(host, is_user=options.user, mode=mode)._replace(**given)
    switch = Switch(host, where, memory())
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


def host_checks(names: Sequence[str], *, fires: bool) -> list[tuple[str, Callable[[Settings], str]]]:
    """What `doctor` looks at: the hosts of these names; without names those that are switched on here or for the user.
    `fires`: also how each hook was tried, and whether its answers are proven to reach the model. UsageError for an
    unknown one."""
    from readcache.hosts.checks import check_host

    def check(host: Host, where: Where, settings: Settings) -> str:
        said = check_host(host, where, memory(), tells_of_trial=fires)
        if not fires:
            return said
        from readcache.cli.proof import model_has_our_answers

        return f"{said}; {model_has_our_answers(host.name, settings)}"

    found = [pair for pair in switched_on() if not names or pair[0].name in names]
    for host in map(find_host, dict.fromkeys(names)):
        if host.name not in [known.name for known, _ in found]:
            found.append((host, where_here(host, is_user=False)))
    return [(host.name, partial(check, host, where)) for host, where in found]


def switched_on(*, everywhere: bool = False) -> list[tuple[Host, Where]]:
    """The hosts that are switched on here or for the user, and `everywhere` those of other projects that are
    remembered. None without a home directory."""
    try:
        known = remembered_places(memory())
    except UsageError:  # without a home nothing was switched on
        return []
    here = [(name, os.getcwd(), is_user) for name in (*MODULES, *plugin_names("hosts")) for is_user in (False, True)]
    found = dict[tuple[str, str], tuple[Host, Where]]()
    for name, root, is_user in [*here, *(place for place in known if everywhere and place[1])]:
        host = find_host(name)
        where = where_here(host, is_user=is_user)._replace(root=root)
        if Switch(host, where, memory()).is_known():
            found[name, "" if is_user else root] = host, where
    return list(found.values())


def where_here(host: Host, *, is_user: bool, mode: str = "") -> Where:
    """This directory's project, or all of the user's."""
    home = os.path.expanduser("~")
    program, client = python_program(), find_client()
    return Where(os.getcwd(), home, is_user, program, mode or host.mode, "default", dict(os.environ), client)


def memory() -> str:
    """Where it is remembered what was switched on. UsageError."""
    return os.path.join(state_directory(), "hosts")
