"""`init`: enable a host, or the hosts that are found on this machine, and print each change of their settings."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from readcache.cli.hosts import SHARED, install_target_here, make_changes, memory
from readcache.cli.options import HOST_OPTIONS
from readcache.cli.output import is_agreed, say, warn
from readcache.core.model.errors import ReadcacheError, UsageError
from readcache.core.model.plugins import plugin_names
from readcache.core.model.policy import Policy
from readcache.hosts import MODULES, find_host
from readcache.hosts.host import Host
from readcache.hosts.settings_files.switch import FileChange, Switch
from readcache.process.settings import Settings
from readcache.process.tidy import what_is_kept

_PATIENCE = 10.0  # seconds for `PROGRAM --version`, which usually takes less than 1


class _Plan(NamedTuple):
    """The changes that enable a host. `limit`: why nothing can be omitted there although it was asked for, or None."""

    host: Host
    switch: Switch
    changes: Sequence[FileChange]
    limit: str | None

    def outcome(self) -> str:
        """Return what the changes would do, in a few words."""
        if not self.changes:
            return f"already {self.switch.target.mode}"
        paths = [change.path for change in self.changes]
        where = paths[0] if len(paths) == 1 else f"{len(paths)} files in {os.path.commonpath(paths)}"
        return f"would be {self.switch.target.mode}: changes {where}"


def init_command(options: argparse.Namespace, settings: Settings) -> int:
    """Enable a host, or change how it is enabled. Without a host, list the hosts that are found here, and enable them
    after a yes. Return 1 if the answer was no, or if a host cannot be enabled.

    Raise ReadcacheError if the named host's settings cannot be changed, or no host is found. Raise UsageError if nobody
    can be asked.
    """
    if options.all_found and options.host:
        raise UsageError("init takes a HOST, or --all-found; see readcache init --help")
    Policy.named(options.policy or "default").restoring(options.restore or "")
    if not options.host:
        return _enable_found(options, settings)
    plan = _plan(find_host(options.host), options)
    _enable(plan, is_dry=options.dry_run)
    if plan.switch.target.mode != "off":
        _say_what_is_kept([plan], settings)
    return 0


def _plan(host: Host, options: argparse.Namespace, *, keeps_settings: bool = False) -> _Plan:
    """Return the plan that enables a host. `keeps_settings`: a host that is enabled keeps its mode and policy, unless
    an option gives another one. Raise ReadcacheError if its settings cannot be changed."""
    target = install_target_here(host, is_user=not options.project)
    target = Switch(host, target, memory()).as_remembered() if keeps_settings else target
    mode = "off" if options.off else "advise" if options.advise else "on" if options.on else target.mode
    given = {name: value for name in HOST_OPTIONS if (value := getattr(options, name))}
    target = target._replace(mode=mode, **given)
    limit = host.only_advises(target) if mode == "on" else None
    switch = Switch(host, target._replace(mode="advise" if limit else mode), memory())
    return _Plan(host, switch, switch.plan_on(), limit)


def _enable(plan: _Plan, *, is_dry: bool) -> None:
    """Make the changes of a plan unless `is_dry`. Print them, and the next step of the user. Raise ReadcacheError if a
    file cannot be changed."""
    host, target = plan.host, plan.switch.target
    make_changes(plan.switch, plan.changes, is_dry=is_dry)
    why = plan.limit or (host.why if target.mode == host.mode else "as requested")
    done = "already " if not plan.changes else "would be " if is_dry else ""
    say(f"{host.name}: {done}{target.mode} ({why})")
    if target.mode == "off":
        return
    if way := host.second_best(target):
        say(f"way: {way}")
    say(f"next: {host.todo(target)}")
    if target.program == SHARED and host.keeps:  # mini-swe-agent's settings name no program
        say("shared: everyone who uses these settings needs `readcache` on PATH; without it they have no effect")
        if shutil.which(*SHARED) is None:
            say(f"missing: `readcache` is not on your PATH, so nothing is omitted yet: {_how_to_find_it()}")


def _how_to_find_it() -> str:
    """Return a text about how to put `readcache` on PATH."""
    beside = os.path.dirname(sys.executable)
    is_there = os.access(os.path.join(beside, *SHARED), os.X_OK)
    return f"add {beside} to PATH" if is_there else "install readcache so that it is on PATH"


def _say_what_is_kept(plans: Sequence[_Plan], settings: Settings) -> None:
    """Print one line: what is stored where and for how long, how to look, and how to undo."""
    kept = what_is_kept(settings) if any(plan.host.keeps for plan in plans) else "nothing after a run"
    name = plans[0].host.name if len(plans) == 1 else ""
    scope = "" if plans[0].switch.target.is_user else " --project"
    look = f"`readcache doctor{f' --host {name}' if name else ''}`, and `readcache gain` after some calls"
    say(f"kept: {kept}; look: {look}; undo: `readcache uninit {name or 'HOST'}{scope}`")


# ---------------------------------------------------------------- without a host


def _enable_found(options: argparse.Namespace, settings: Settings) -> int:
    """List the hosts that are found here, and enable them after a yes. See `init_command`."""
    plans, failed = list[_Plan](), 0
    for host, program, version in _found_hosts():
        try:
            plans.append(_plan(host, options, keeps_settings=True))
            outcome = plans[-1].outcome()
        except ReadcacheError as error:
            failed, outcome = 1, f"cannot be enabled: {error}"
        say(f"{host.name} {version}, {program}: {outcome}")
    plans = [plan for plan in plans if plan.changes]
    if not plans:
        say("nothing was changed" if failed else "nothing to change: all of these are enabled")
        return failed
    otherwise = "run `readcache init HOST` for one of these, or `readcache init --all-found`"
    if not (options.dry_run or options.all_found or is_agreed("Enable these?", otherwise)):
        say("nothing was changed")
        return 1
    enabled = []
    for plan in plans:
        try:
            _enable(plan, is_dry=options.dry_run)
            enabled.append(plan)
        except ReadcacheError as error:
            failed = 1
            warn(f"{plan.host.name}: {error}")
    if enabled and not options.off:
        _say_what_is_kept(enabled, settings)
    return failed


def _found_hosts() -> Iterator[tuple[Host, str, str]]:
    """Yield (host, path of its program, version of the program) for the hosts on PATH. Raise ReadcacheError if there is
    none."""
    hosts = [find_host(name) for name in (*MODULES, *plugin_names("hosts"))]
    programs = [host.scripted.words[0] if host.scripted else host.program for host in hosts]
    found = [(host, path) for host, name in zip(hosts, programs, strict=True) if (path := shutil.which(name))]
    if not found:
        names = ", ".join(filter(None, programs))
        raise ReadcacheError(
            f"no agent was found: none of {names} is on PATH; run `readcache init HOST` if it is elsewhere"
        )
    with ThreadPoolExecutor() as several:
        versions = several.map(_version, [path for _, path in found])
        yield from ((host, path, version) for (host, path), version in zip(found, versions, strict=True))


def _version(program: str) -> str:
    """Return the version that a program prints, or "?" if it prints none in time."""
    try:
        done = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "?"
    found = re.search(r"\d+(\.\d+)+([-+]\w[\w.+-]*\w)?", done.stdout.decode(errors="replace"))
    return found[0] if found else "?"
