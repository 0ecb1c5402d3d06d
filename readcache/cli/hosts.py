"""`uninit`, the changes of a host's settings, and the hosts that `doctor` checks.

`uninit --all` removes everything of readcache except the package.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from readcache.cli import shims
from readcache.cli.output import is_agreed, say, warn
from readcache.cli.serve import end_servers
from readcache.cli.shim_files import find_client
from readcache.core.model.errors import ReadcacheError, UsageError
from readcache.core.model.plugins import how_to_uninstall, plugin_names
from readcache.hosts import MODULES, find_host
from readcache.hosts.hooks import python_program
from readcache.hosts.host import Host, InstallTarget
from readcache.hosts.settings_files.switch import FileChange, Switch, remembered_installs
from readcache.process.settings import Settings
from readcache.process.state import is_unnamed, state_directory
from readcache.serve import stop

MOST_LINES = 60  # a longer new file is printed only in a dry run
SHARED = ("readcache",)  # the program in settings that other people use too


def make_changes(switch: Switch, changes: Sequence[FileChange], *, is_dry: bool) -> None:
    """Print the changes, and make them unless `is_dry`. Raise ReadcacheError if a file cannot be changed."""
    for change in changes:
        lines = change.diff().splitlines(keepends=True)
        is_long = change.before is None and len(lines) > MOST_LINES and not is_dry
        print(f"+++ {change.path}: {len(lines):,} lines, all ours\n" if is_long else "".join(lines), end="")
    if not is_dry:
        switch.write(changes)


def host_checks(names: Sequence[str], *, fires: bool) -> list[tuple[str, Callable[[Settings], str]]]:
    """Return (name, check) for the hosts that `doctor` checks.

    `names`: the hosts to check; if empty, check the hosts that are switched on here or for the user. `fires`: also
    report how each hook was tried, and if its answers are proven to reach the model. Raise UsageError for an unknown
    host.
    """
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
    """Return the hosts that are switched on here or for the user, or an empty list without a home directory.

    `everywhere`: also return the hosts that readcache remembers as switched on in other projects.
    """
    try:
        known = remembered_installs(memory())
    except UsageError:  # without a home directory nothing was switched on
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
    """Return the install target for all of the user's projects, or for everyone who works in this directory's
    project."""
    # A project's settings must contain no path of this machine.
    program, client = (python_program(), find_client()) if is_user else (SHARED, "")
    home = os.path.expanduser("~")
    return InstallTarget(os.getcwd(), home, is_user, program, mode or host.mode, "default", dict(os.environ), client)


def memory() -> str:
    """Return the directory in which readcache remembers which hosts were switched on. Raise UsageError without a home
    directory."""
    return os.path.join(state_directory(), "hosts")


def uninit_command(options: argparse.Namespace, settings: Settings) -> int:
    """Remove readcache from a host's settings, or with `--all` from this machine. Raise ReadcacheError if something
    cannot be removed."""
    if options.all == bool(options.host):
        raise UsageError("uninit needs a HOST, or --all; see readcache uninit --help")
    if options.all:
        return _remove_all(settings, is_dry=options.dry_run, is_confirmed=options.yes)
    host = find_host(options.host)
    switch = Switch(host, install_target_here(host, is_user=not options.project), memory())
    changes = switch.plan_off()
    make_changes(switch, changes, is_dry=options.dry_run)
    say(f"{host.name}: {'already removed' if not changes else 'would be removed' if options.dry_run else 'removed'}")
    for _, target in () if changes else [pair for pair in switched_on() if pair[0].name == host.name]:
        say(f"it is on elsewhere: `readcache uninit {host.name} {target.scope_option()}`")
    if changes and not options.dry_run and not _is_any_remembered():
        state = state_directory()
        with contextlib.suppress(OSError):  # it contains something else
            os.rmdir(state)
        if os.path.exists(state):
            left = ", ".join(sorted(os.listdir(state)))
            say(f"{state} still has {left}; `readcache uninit --all` takes it away")
    return 0


def _remove_all(settings: Settings, *, is_dry: bool, is_confirmed: bool) -> int:
    """List everything of readcache except the package, and remove it after a yes. Return 1 if the answer was no.

    Raise ReadcacheError if something could not be removed. Raise UsageError if nobody can be asked.
    """
    things = list(_things())
    for what, _ in things:
        say(what)
    if not is_unnamed(settings.store):
        say(f"{settings.store} is yours, and stays")
    if is_dry or not things:
        say("nothing was taken away" if things else "nothing of readcache is here but the package")
        return 0
    if not is_confirmed and not is_agreed("Take all of this away?", "add --yes to take all of this away"):
        say("nothing was taken away")
        return 1
    for what, take_away in things:  # the state directory comes last, because it has the old settings
        try:
            take_away()
        except ReadcacheError as error:
            warn(f"still there: {what}")
            raise ReadcacheError(f"{error}; then run this again for the rest") from None
    say(f"removed; restart the agents that run. Only the package is left: {how_to_uninstall()}")
    return 0


def _things() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield (description, function that removes it) for everything of readcache except the package. Raise UsageError
    without a home directory."""
    state = state_directory()
    for host, target in switched_on(everywhere=True):
        switch = Switch(host, target, memory())
        take_out = partial(_switch_off, switch)
        whose = "all of your projects" if target.is_user else target.root
        yield f"host    {host.name}, {whose}: {', '.join(switch.paths())}", take_out
    for directory in dict.fromkeys([*shims.remembered_directories(), *shims.find_directories(os.environ)]):
        yield f"shims   {directory}", partial(shims.uninstall, directory)
    for path in filter(stop.answers, stop.socket_paths_in(os.path.join(state, "serve"))):
        yield f"server  {path}", partial(end_servers, [path])
    if os.path.isdir(state):
        yield f"data    {state}: {', '.join(sorted(os.listdir(state)))}", partial(_remove, state)


def _switch_off(switch: Switch) -> None:
    switch.write(switch.plan_off())


def _remove(directory: str) -> None:
    try:
        shutil.rmtree(directory)
    except OSError as error:
        raise ReadcacheError(f"cannot remove {error.filename}: {error.strerror}; remove it yourself") from None


def _is_any_remembered() -> bool:
    """Return True if a host is remembered as switched on. If none is, remove the directory that remembers them."""
    with contextlib.suppress(FileNotFoundError):
        if os.listdir(memory()):
            return True
        os.rmdir(memory())
    return False
