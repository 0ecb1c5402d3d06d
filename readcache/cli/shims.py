"""`shims`: install shims into a directory, remove them, and print the variables with which a sandbox uses them."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
from collections.abc import Mapping, Sequence

from readcache.cli import shim_files
from readcache.cli.output import say, warn
from readcache.cli.shim_files import find_client
from readcache.core.model.errors import ReadcacheError, UsageError
from readcache.core.model.policy import Policy
from readcache.process.settings import Settings, session_variable
from readcache.process.state import state_directory, store_file

MEMORY = "shims"  # a file in the state directory: the directories of installed shims, one a line


def shims_command(options: argparse.Namespace, settings: Settings) -> int:
    """Run `install`, `uninstall` or `env`. Return 0. Raise ReadcacheError on failure."""
    if options.action == "install":
        return install(options.dir, options.tools)
    if options.action == "uninstall":
        return uninstall(options.dir)
    if options.policy:
        Policy.named(options.policy)
    return env(options.dir, settings, launch=options.launch, whole_command=options.whole_command)


def install(directory: str, tools: Sequence[str]) -> int:
    """Write a shim for each tool into `directory`, creating it. A second call brings everything up to date.

    Raise UsageError for a tool that cannot be shimmed. Raise ReadcacheError if another file has a shim's name, or if
    the files cannot be written.
    """
    named = dict.fromkeys(name for given in tools for name in given.split(",") if name)
    chosen = tuple(named) or shim_files.DEFAULT_TOOLS
    if unknown := [name for name in chosen if name not in shim_files.TOOLS]:
        raise UsageError(f"no shim for {', '.join(unknown)}: choose among {', '.join(shim_files.TOOLS)}")
    directory = os.path.realpath(directory)
    if problem := shim_files.find_unfit_name(directory):
        raise UsageError(problem)
    taken = [path for name in chosen if os.path.lexists(path := os.path.join(directory, name))]
    if taken and shim_files.find_tools(directory) is None:
        raise ReadcacheError(f"{taken[0]} exists: give the shims a directory of their own")
    client = find_client()
    try:
        shim_files.write(directory, chosen, client)
    except OSError as error:
        raise ReadcacheError(
            f"cannot write shims into {directory}: {error.strerror}; choose another directory"
        ) from None
    _remember(directory)
    say(f"{directory}: shims for {', '.join(chosen)}")
    if client:
        socket = shlex.quote(os.path.join(directory, shim_files.SOCKET))
        say(f"for a sandbox without Python: mount {directory} in it, and run on the host:")
        say(f"  readcache serve --socket {socket} --session ID")
    return 0


def uninstall(directory: str) -> int:
    """Remove the shims from `directory`, and the directory if it is empty then. Raise ReadcacheError on failure."""
    directory, tools = _installation(directory)
    try:
        shim_files.remove(directory, tools)
    except OSError as error:
        raise ReadcacheError(
            f"cannot remove the shims from {directory}: {error.strerror}; check its permissions"
        ) from None
    say(f"{directory}: shims removed")
    if left := shim_files.socket_beside(directory):
        say(f"a server is still running at {left}: stop it with SIGTERM")
    return 0


def env(directory: str, settings: Settings, *, launch: bool = False, whole_command: bool = False) -> int:
    """Print lines that the agent's own shell must `eval`: session, store, and the recording of its stdout.

    `launch`: print the harness's environment instead, so that each bash that it starts does the same by itself.
    `whole_command`: like `launch`, in whole-command mode. An existing BASH_ENV is kept, because readcache's BASH_ENV
    sources it. Raise UsageError if bash would expand the directory's name.
    """
    directory, _ = _installation(directory)
    if problem := shim_files.find_unfit_name(directory):
        raise UsageError(problem)
    shim_files.bring_up_to_date(directory)
    if problem := next(shim_files.find_problem(directory), None):
        warn(problem)
    launch = launch or whole_command
    kept = kept_bash_env(os.environ) if launch else ""
    if kept:
        warn(f"BASH_ENV={kept} is kept: the shims source it, and so do child shells")
    variable = session_variable(os.environ, settings.session)
    is_plain = settings.policy == "default" and not os.environ.get("READCACHE_POLICY")
    named = {
        "READCACHE_SESSION": "" if variable else settings.session or f"sandbox-{os.urandom(8).hex()}",
        "READCACHE_SESSION_FROM": variable,
        "READCACHE_STORE": store_file(settings.store_spec()) or settings.store,
        "READCACHE_AGENT": settings.agent if settings.agent != "main" else "",
        "READCACHE_CLIP": settings.clip,
        "READCACHE_PROTECTED": settings.protected,
        "READCACHE_MODEL": settings.model,
        "READCACHE_POLICY": "" if is_plain else settings.policy,
        "READCACHE": os.environ.get("READCACHE", ""),
        "READCACHE_BASH_ENV": kept,
    }
    for name, value in named.items():
        if value:
            print(f"export {name}={shlex.quote(value)}")
    sourced = shim_files.AGENT_COMMAND if whole_command else shim_files.AGENT_SHELL
    path = shlex.quote(os.path.join(directory, sourced))
    print(f"export BASH_ENV={path}" if launch else f"[ -r {path} ] && . {path}")
    return 0


def kept_bash_env(environ: Mapping[str, str]) -> str:
    """Return the sandbox's own BASH_ENV, also if readcache's BASH_ENV has replaced it, or "" if there is none."""
    given = environ.get("BASH_ENV", "")
    is_ours = os.path.basename(given) in (shim_files.AGENT_SHELL, shim_files.AGENT_COMMAND)
    return environ.get("READCACHE_BASH_ENV", "") if is_ours else given


def _installation(given: str) -> tuple[str, tuple[str, ...]]:
    """Return the real path of a directory of shims, and its tools. Raise ReadcacheError if it is not one."""
    directory = os.path.realpath(given)
    tools = shim_files.find_tools(directory)
    if tools is None:
        raise ReadcacheError(
            f"{directory} is not a directory of shims: run `readcache shims install {given}` to create it"
        )
    return directory, tools


def _remember(directory: str) -> None:
    """Record a directory of shims for `remembered_directories`. Ignore failures."""
    with contextlib.suppress(OSError, UsageError):
        os.makedirs(state_directory(), mode=0o700, exist_ok=True)
        if directory not in remembered_directories():
            with open(os.path.join(state_directory(), MEMORY), "a", encoding="utf-8") as file:
                file.write(f"{directory}\n")


def remembered_directories() -> list[str]:
    """Return the directories of shims that this user installed and that still exist. Raise UsageError without a home
    directory."""
    with (
        contextlib.suppress(FileNotFoundError),
        open(os.path.join(state_directory(), MEMORY), encoding="utf-8") as file,
    ):
        return [
            directory
            for directory in file.read().split("\n")
            if directory and shim_files.find_tools(directory) is not None
        ]
    return []


def find_directories(environ: Mapping[str, str]) -> list[str]:
    """Return the directories of shims in PATH and BASH_ENV."""
    candidates = [*environ.get("PATH", "").split(":"), os.path.dirname(environ.get("BASH_ENV", ""))]
    found = (os.path.realpath(directory) for directory in candidates if directory)
    return list(dict.fromkeys(directory for directory in found if shim_files.find_tools(directory) is not None))
