"""`uninit HOST` takes one host's settings back; `uninit --all` takes away all of readcache but the package."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial

from readcache.cli import shims
from readcache.cli.hosts import install_target_here, make_changes, memory, switched_on
from readcache.cli.output import is_agreed, say, warn
from readcache.cli.serve import end_servers
from readcache.core.model.errors import ReadcacheError, UsageError
from readcache.hosts import find_host
from readcache.hosts.settings_files.switch import Switch
from readcache.process.settings import Settings
from readcache.process.state import is_unnamed, state_directory
from readcache.serve import stop


def uninit_command(options: argparse.Namespace, settings: Settings) -> int:
    """Takes out of a host's settings what is ours. ReadcacheError."""
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
        with contextlib.suppress(OSError):  # something else is in it
            os.rmdir(state)
        if os.path.exists(state):
            left = ", ".join(sorted(os.listdir(state)))
            say(f"{state} still has {left}; `readcache uninit --all` takes it away")
    return 0


def _remove_all(settings: Settings, *, is_dry: bool, is_confirmed: bool) -> int:
    """Says what there is, and takes it away after a yes. 1 where something could not be taken away, or the answer was
    no; UsageError where nobody can be asked."""
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
    for what, take_away in things:  # the state directory is the last: it has the settings as they were before
        try:
            take_away()
        except ReadcacheError as error:
            warn(f"still there: {what}")
            raise ReadcacheError(f"{error}; then run this again for the rest") from None
    say("taken away; restart the agents that run. Left is the package: pip uninstall readcache")
    return 0


def _things() -> Iterator[tuple[str, Callable[[], object]]]:
    """What there is, in words, and what takes it away. UsageError without a home directory."""
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
        yield f"kept    {state}: {', '.join(sorted(os.listdir(state)))}", partial(_remove, state)


def _switch_off(switch: Switch) -> None:
    switch.write(switch.plan_off())


def _remove(directory: str) -> None:
    try:
        shutil.rmtree(directory)
    except OSError as error:
        raise ReadcacheError(f"cannot remove {error.filename}: {error.strerror}; remove it yourself") from None


def _is_any_remembered() -> bool:
    """False where no host is switched on any more; then the directory is gone that remembered it."""
    with contextlib.suppress(FileNotFoundError):
        if os.listdir(memory()):
            return True
        os.rmdir(memory())
    return False
