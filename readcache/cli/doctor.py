"""`doctor`: check everything that the command line needs, and print one line for each check."""

from __future__ import annotations

import argparse
import contextlib
import glob
import os
import platform
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing

from readcache import __version__
from readcache.cli.output import say
from readcache.cli.sessions import recorded
from readcache.cli.status import PAUSED, check_coverage
from readcache.core.model.errors import ReadcacheError
from readcache.core.model.limits import LARGEST_OUTPUT
from readcache.core.model.policy import Policy
from readcache.log.store.protocol import without_password
from readcache.process import failures
from readcache.process.mode import MODES
from readcache.process.settings import SESSION_FROM, Settings, clip_sizes, session_variable
from readcache.process.state import is_missing, is_off, is_unnamed, store_file, unnamed_stores
from readcache.process.tidy import note_scrubbed, what_is_kept
from readcache.report import many


class _Undone(Exception):
    """Raised to roll back a transaction."""


def doctor_command(options: argparse.Namespace, settings: Settings) -> int:
    """Print the findings. Return 1 if something is broken. If hosts are named, check only those. With `--scrub`, remove
    secrets from the store instead."""
    if options.scrub:
        return _scrub(settings)
    broken = False
    for name, check in _checks(options):
        try:
            verdict, text = "ok", check(settings)
        except Exception as error:
            verdict, text, broken = "broken", str(error) or type(error).__name__, True
        say(f"{verdict:6}  {name:9}  {' '.join(text.split())}")
    return 1 if broken else 0


def _scrub(settings: Settings) -> int:
    """Remove certain secrets and lines of protected files from the named store, or from all unnamed ones. Print how
    many. Return 0."""
    from readcache.log.scrub import scrub_all
    from readcache.log.store import open_store

    is_all = is_unnamed(settings.store)
    specs = unnamed_stores() if is_all else [settings.store]
    for spec in (spec for spec in specs if not is_missing(spec)):
        with closing(open_store(spec)) as store:
            counts = scrub_all(store, Policy().protecting(settings.protected))
        found = f"{many(sum(counts), 'call')} of {many(len(counts), 'session')}"
        say(f"removed secrets and protected lines from {found} in {without_password(spec)}")
    if is_all:
        note_scrubbed()
    return 0


def _checks(options: argparse.Namespace) -> list[tuple[str, Callable[[Settings], str]]]:
    from readcache.cli.hosts import host_checks
    from readcache.cli.shim_files import client_state

    hosts = host_checks(options.host, fires=options.fire)
    if options.host:
        return hosts
    return [
        ("python", lambda _: _python()),
        ("readcache", lambda _: __version__),
        ("bash", lambda _: _bash()),
        ("mode", _mode),
        ("store", _store),
        ("kept", what_is_kept),
        ("server", _server),
        ("client", lambda _: client_state()),
        ("session", _session),
        ("shims", lambda settings: _shims(settings, options.shims)),
        ("failures", lambda _: _failures()),
        ("results", check_coverage),
        *hosts,
    ]


def _python() -> str:
    """Return the version and path of this Python, and the variables that can keep `readcache run` from starting (see
    `command_line` in shims/tool.c)."""
    said = f"{platform.python_version()} at {sys.executable}"
    obeyed = (
        [] if sys.flags.ignore_environment else [name for name in ("PYTHONHOME", "PYTHONPATH") if os.environ.get(name)]
    )
    if not obeyed:
        return said
    risk = "with a wrong value the command is not run; install readcache with a C compiler, or unset it for `readcache`"
    return f"{said}; `readcache run` obeys {' and '.join(obeyed)}: {risk}"


def _bash() -> str:
    path = shutil.which("bash")
    if path is None:
        raise ReadcacheError("not found: install bash, or put it on PATH")
    done = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10)
    if done.returncode or not done.stdout:
        raise ReadcacheError(f"{path} --version ends with status {done.returncode}: put another one on PATH")
    return f"{path}: {done.stdout.splitlines()[0]}"


def _mode(settings: Settings) -> str:
    if settings.mode not in MODES.values():
        raise ReadcacheError(f"READCACHE={settings.mode} is invalid, so nothing is omitted: use on, advise or off")
    if is_off():
        return PAUSED
    if settings.mode == "off":
        return "off: `run` is a plain pass-through (READCACHE)"
    sizes = clip_sizes(settings.clip)
    Policy.named(settings.policy)
    policy = f", policy {settings.policy}" if settings.policy != "default" else ""
    return settings.mode + policy + (f", the harness shows {' + '.join(map(str, sizes))} characters" if sizes else "")


def _store(settings: Settings) -> str:
    spec = settings.store_spec()
    path = store_file(spec)
    if path is None:
        return _store_on_server(spec)
    _require_room(path)
    if is_missing(spec):
        return f"none yet; will be created at {path}"
    from readcache.core.model.events import Failed
    from readcache.core.model.records import unreadable_events
    from readcache.log.store import open_store

    with closing(open_store(spec)) as store, contextlib.suppress(_Undone), store.transaction():
        contexts = list(store.sessions())
        sessions = dict.fromkeys(session for session, *_ in contexts)
        unreadable = [text for session in sessions for text in unreadable_events(store.records(session))]
        store.append("", "doctor", [Failed("", "", "")], 0.0)
        raise _Undone
    with _explained(path), closing(sqlite3.connect(path, isolation_level=None)) as db:
        found = db.execute("PRAGMA integrity_check").fetchone()[0]
        db.execute("BEGIN IMMEDIATE")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        db.execute(f"PRAGMA user_version = {version}")  # a rollback never writes to a full disk; this does
        db.execute("COMMIT")
    if found != "ok":
        raise ReadcacheError(f"{path} is damaged ({found}): move it away, and readcache will create a new one")
    if unreadable:
        what = f"{path}: {unreadable[0]}" + (f", and {len(unreadable) - 1} more" if unreadable[1:] else "")
        raise ReadcacheError(f"{what}; those sessions show everything again")
    size = f"{os.path.getsize(path):,} bytes"
    contents = f"schema version {version}, contexts: {len(contexts)}, {size}, writable, intact"
    return f"{path}: {contents}{_others_rights(path)}{_set_aside(path)}"


def _store_on_server(spec: str) -> str:
    from readcache.log.store.redis import RedisStore

    with closing(RedisStore(spec)) as store:
        version, contexts = store.check(), len(store.sessions())
        return f"{store.path}: reachable, {version}, contexts: {contexts}, writable; {store.kept()}"


def _set_aside(path: str) -> str:
    found = sorted(glob.glob(f"{glob.escape(path)}.damaged-*[0-9]"))
    return f"; a damaged one was set aside as {found[-1]}: delete it when you no longer need it" if found else ""


def _others_rights(path: str) -> str:
    found = os.stat(path)
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return ", but it belongs to another user, who can read what agents were shown: choose another with --store"
    return ""


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    from readcache.log.store.sqlite_file import explain_error

    try:
        yield
    except sqlite3.Error as error:
        raise ReadcacheError(explain_error(error, "look into", path)) from None


def _require_room(path: str) -> None:
    """Raise ReadcacheError if there is no room beside the store for the largest output that is recorded."""
    directory = os.path.dirname(path)
    while not os.path.exists(directory):
        directory = os.path.dirname(directory)
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(LARGEST_OUTPUT))
    except OSError as error:
        what = "written" if os.path.exists(path) else "created"
        todo = "fix that, or use --store"
        raise ReadcacheError(
            f"{path} cannot be {what}, for {directory} takes no more: {error.strerror}; {todo}"
        ) from None


def _server(settings: Settings) -> str:
    from readcache.cli.serve import ask_status
    from readcache.serve.address import NoServer

    if store_file(settings.store_spec()) is None:
        return "not needed: the store is on a server"
    try:
        found = ask_status(settings)
    except NoServer as error:
        raise ReadcacheError(str(error)) from None
    others = "".join(_servers_of_others(settings))
    if found is None:
        return f"not running; the next hook or shim starts one{others}"
    in_memory = f"{found['readers']} readers and {found['conversations']} conversations of hooks held"
    causes = "".join(f", {number} did without it ({cause})" for cause, number in sorted(found["causes"].items()))
    took = f"answered in {found['milliseconds']:.1f} ms"
    who = f"process {found['pid']}, readcache {found['readcache']}"
    return f"{who}, {took}, {found['calls']} calls, {in_memory}{causes}{others}"


def _servers_of_others(settings: Settings) -> Iterator[str]:
    """Yield a text for each running server of this store that belongs to another version."""
    from readcache.serve import stop
    from readcache.serve.address import server_paths

    mine, _ = server_paths(settings.store)
    for path in stop.socket_paths_of_all_versions(mine):
        if path != mine and stop.answers(path):
            end = "it ends when idle, or with `readcache serve --stop`"
            yield f"; one of readcache {stop.version_at(path)} is still running: {end}"


def _server_beside(settings: Settings, socket: str) -> str:
    """Return a text about the server of a directory of shims for a sandbox. Raise ReadcacheError if it cannot be
    used."""
    from readcache.cli.serve import ask_status
    from readcache.serve.address import NoServer

    start = f"`readcache serve --socket {shlex.quote(socket)} --session ID`"
    try:
        found = ask_status(settings, socket)
    except NoServer:
        what = "is of another version, does not serve sandboxes, or hangs"
        raise ReadcacheError(f"the server at {socket} {what}: stop it, then run {start}") from None
    if found is None:
        return f"no server at {socket}, so every byte is shown: run {start}"
    return f"server at {socket}: process {found['pid']}, store {found['store']}"


def _session(settings: Settings) -> str:
    if not settings.session:
        if name := os.environ.get(SESSION_FROM):
            return f"none here: {SESSION_FROM} names {name}, which the host must set for its commands"
        return "none named, so `run` passes everything through: set READCACHE_SESSION"
    found = recorded(settings.store_spec(), settings.session)
    agents = [f"{agent} has {events} events" for _, agent, events, _ in found]
    source = f" (as {name} says)" if (name := session_variable(os.environ, settings.session)) else ""
    what = f": {', '.join(agents)}" if agents else ", nothing recorded yet"
    return settings.session + source + what


def _shims(settings: Settings, named: str | None) -> str:
    from readcache.cli.shim_files import find_closed_to_others, find_problem, socket_beside
    from readcache.cli.shims import find_directories, kept_bash_env

    directories = find_directories(os.environ)
    if named is not None:
        directories.append(os.path.realpath(named))
    if not directories:
        return "none on PATH or in BASH_ENV"
    problems = [problem for directory in directories for problem in find_problem(directory)]
    if problems:
        raise ReadcacheError("; ".join(problems))
    notes = [", ".join(directories)]
    if not os.environ.get("READCACHE", ""):
        notes.append("they omit nothing until READCACHE=on is set")
    notes += [_server_beside(settings, socket) for directory in directories if (socket := socket_beside(directory))]
    if kept := kept_bash_env(os.environ):
        by_it = "their BASH_ENV reads" if "READCACHE_BASH_ENV" in os.environ else "BASH_ENV is not theirs, and reads"
        notes.append(f"{by_it} {kept}")
    closed = (
        [path for directory in directories if (path := find_closed_to_others(directory))] if os.geteuid() == 0 else []
    )
    if closed:
        notes.append(f"{closed[0]} is closed to other users: an agent that runs as one of them sees every byte")
    return "; ".join(notes)


def _failures() -> str:
    found = failures.noted()
    if not found:
        return "none"
    what = "1 failure" if len(found) == 1 else f"{len(found)} failures"
    raise ReadcacheError(
        f"{what}, the real output was shown; the first: {found[0]}; when it is fixed, delete {failures.path()}"
    )
