"""`serve` and `mcp`: pass the command line's settings to a server, start the on-demand server, and stop it."""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from readcache import Sessions, __version__
from readcache.cli.options import IDLE_SECONDS
from readcache.cli.output import say, warn
from readcache.cli.shim_files import bring_up_to_date
from readcache.core.model.errors import ReadcacheError, UsageError
from readcache.core.model.policy import Mode
from readcache.hosts.hooks import hook_answer
from readcache.process import failures
from readcache.process.buffered import chosen_policy
from readcache.process.mode import OFF, acts
from readcache.process.settings import Settings
from readcache.process.state import is_off, store_file
from readcache.serve import address, server, stop
from readcache.serve.address import server_paths, socket_store
from readcache.serve.calls import FrameServer
from readcache.serve.frames import FIRST, frame, head_texts, read_frame
from readcache.serve.hooks import ServedHooks
from readcache.serve.protocol import MOST_READERS, Protocol
from readcache.serve.stop import PATIENCE

_MOST_STATUS = 1 << 20  # bytes
_SWITCH = 0.0005  # seconds; without this, folding a long log stalls other threads for Python's usual 5 ms
_START_SECONDS, _STOP_SECONDS = 20.0, 10.0  # a busy machine takes 5 seconds to start Python
_MOST_SILENT = 2  # a server counts as hung if it does not answer this many status requests in a row, of a second each


def mcp_command(options: argparse.Namespace, settings: Settings) -> int:
    """Serve until the client leaves. Return 0. Without a named session, each start is a new conversation."""
    from readcache.serve.mcp.server import serve_mcp

    if not os.path.isdir(options.root):
        raise UsageError(f"--root {options.root} is not a directory: give the project's")
    policy = replace(chosen_policy(settings), horizon_tokens=options.horizon)
    return serve_mcp(
        options.root,
        policy=policy,
        store=settings.store_spec(),
        conversation=settings.session,
        agent=settings.agent,
        one_reader=options.one_reader,
        host=settings.host or "mcp",
    )


def serve_command(options: argparse.Namespace, settings: Settings) -> int:
    """Answer until no client can come. Return the exit status. Raise ReadcacheError if the options are invalid or the
    server cannot start."""
    if options.stop:
        if options.socket is not None:
            raise UsageError("--stop stops servers that were started on demand; send SIGTERM to one with --socket")
        return _stop(settings)
    if options.start:
        return _start(settings)
    if options.on_demand:
        return _serve_on_demand(options, settings)
    if options.idle is not None:
        raise UsageError("--idle only applies with --on-demand: any other server runs until it is stopped")
    if options.local and options.socket is not None:
        raise UsageError("--local is for a client on stdin: clients of a socket may be in a sandbox")
    _show_metrics(options, settings)
    if options.sessions:
        return _serve_sandboxes(options, settings)
    policy = chosen_policy(settings).clearing(os.environ.get("READCACHE_CLEAR", ""))
    store = _store(options, settings)
    if policy.mode is Mode.OFF:  # nothing is recorded, so no store is needed
        store = ""
    may_run = options.socket is None or options.run  # the parent process can run anything anyway
    # Text from a client on a socket does not prove that files are on this machine. Without `run`, none is ever opened.
    local = options.local or None if options.socket is None else None if options.run else False
    sessions = Sessions(
        os.getcwd(),
        store=store or None,
        policy=policy,
        local=local,
        host=settings.host or "serve",
        most_readers=MOST_READERS,
        is_off=is_off,
    )
    with closing(Protocol(sessions, may_run=may_run)) as protocol:
        if options.socket is None:
            return server.answer_stdin(protocol)
        file = store_file(store) if options.run and store else None
        if file is None:
            return server.answer_socket(options.socket, protocol, None)
        with closing(FrameServer(file, ServedHooks(file, hook_answer))) as frame_server:
            return server.answer_socket(options.socket, protocol, frame_server)


def _serve_sandboxes(options: argparse.Namespace, settings: Settings) -> int:
    """Serve only the calls of the named conversations, because a sandbox may send anything. Return the exit status.
    Raise UsageError for invalid options."""
    if options.socket is None or options.run:
        raise UsageError("serve --session is for sandboxes: give --socket with it, and no --run")
    file = store_file(_store(options, settings))
    if file is None:
        raise UsageError("serve --session needs a store in a file: a store on a server has every conversation in it")
    chosen_policy(settings)
    bring_up_to_date(os.path.dirname(options.socket))  # shims of an earlier version do not ask this version's server
    with closing(FrameServer(file, sessions=frozenset(options.sessions))) as frame_server:
        return server.answer_calls(options.socket, frame_server)


def _store(options: argparse.Namespace, settings: Settings) -> str:
    """Return the store of the server. Raise UsageError if there is no home directory for it."""
    # The user's own store is only for clients that may run commands, because they could read it anyway.
    if options.socket is None or options.run:
        return settings.store_spec()
    return options.store or socket_store(options.socket)


def ask_status(settings: Settings, named: str = "") -> dict[str, Any] | None:
    """Return the status that the server reports, with "milliseconds" (the time it took) and "pid". Return None if no
    server is running.

    `named`: the path of the server's socket; default: the server of this store. Raise address.NoServer if it does not
    answer as a server of this version. Raise UsageError if the store cannot be used.
    """
    path, file = (named, "") if named else server_paths(settings.store)
    try:
        began = time.perf_counter()
        connection = address.reach(path, PATIENCE)
    except address.NoServer:
        return None
    try:
        connection.sendall(frame(FIRST, head_texts((__version__, "status", file, "/", ""), (), (), ())))
        letter, data = read_frame(connection, _MOST_STATUS)
        took = time.perf_counter() - began
        if letter != b"T":
            raise address.NoServer(f"the server at {path} does not answer: run `readcache serve --stop`")
        found: dict[str, Any] = json.loads(data)
        return found | {"milliseconds": took * 1000, "pid": address.peer(connection)[0]}
    except (OSError, ValueError) as error:
        raise address.NoServer(
            f"the server at {path} does not answer: {error}; run `readcache serve --stop`"
        ) from error
    finally:
        connection.close()


def _serve_on_demand(options: argparse.Namespace, settings: Settings) -> int:
    idle_seconds = IDLE_SECONDS if options.idle is None else options.idle
    path, file = server_paths(settings.store)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    lock = address.inherited_lock(path)
    if lock is None:
        lock = address.take_lock(path)
    if lock is None:  # another server was faster, and is as good
        if options.metrics is not None:
            raise ReadcacheError(
                "this store already has a server: end it with `readcache serve --stop`, then start this one"
            )
        return 0
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.excepthook = _note
    sys.setswitchinterval(_SWITCH)
    _warm_up()
    _show_metrics(options, settings)
    try:
        with closing(FrameServer(file, ServedHooks(file, hook_answer))) as frame_server:
            return server.answer_calls(path, frame_server, idle_seconds)
    finally:
        os.close(lock)


def _show_metrics(options: argparse.Namespace, settings: Settings) -> None:
    if options.metrics is not None:
        from readcache.serve.metrics import serve_metrics

        warn(f"metrics at {serve_metrics(options.metrics, [settings.host])}")


def _warm_up() -> None:
    """Do the work in advance for which the first calls would wait: imports, and everything created at first use."""
    import readcache.hosts.claude_code.plugin
    import readcache.hosts.codex
    import readcache.hosts.gemini  # noqa: F401
    from readcache import Session

    with contextlib.suppress(ImportError), Session("/", session_id="warm") as session:
        for command in ("cat f", "cat f", "for f in a b; do sed -n 1,9p $f; done; echo x > f"):
            session.observe(command, "".join(f"line {number}\n" for number in range(50)), cwd="/")
    gc.collect()
    gc.freeze()


def _note(failed: threading.ExceptHookArgs) -> None:
    failures.note("serve", failed.exc_type.__name__, str(failed.exc_value))


def _start(settings: Settings) -> int:
    """Start the server unless it runs, and kill one that hangs. Return 1 if none answers. Raise UsageError if the store
    cannot be used.

    When the server answers, print its socket and the environment, which a plugin needs to ask it. If readcache or the
    server is off, start and print nothing.
    """
    if os.environ.get("READCACHE_SERVER") in OFF or not acts(settings.mode):
        return 0
    path, file = server_paths(settings.store)
    deadline = time.monotonic() + _START_SECONDS
    while not _answers(settings, path, _MOST_SILENT):
        if time.monotonic() > deadline:
            return 1
        address.start(path, file)
        time.sleep(0.02)
    environ = {name: value for name, value in os.environ.items() if name.startswith("READCACHE")}
    print(json.dumps({"socket": path, "environ": environ}))
    return 0


def _answers(settings: Settings, path: str, asks: int) -> bool:
    """Return True if a server answers. Kill a server that answers none of `asks` status requests in a row."""
    try:
        return ask_status(settings) is not None
    except address.NoServer as error:
        if isinstance(error.__cause__, TimeoutError):
            if asks > 1:
                return _answers(settings, path, asks - 1)
            failures.note("serve", "hung", str(error))
            with contextlib.suppress(UsageError):  # the system does not report the process
                stop.send_signal(path, signal.SIGKILL)  # the clients that wait for the server continue
        return False


def _stop(settings: Settings) -> int:
    """Stop the servers of the store, also of other versions, and remove the files of other versions. Return 0."""
    mine, _ = server_paths(settings.store)
    socket_paths = stop.socket_paths_of_all_versions(mine)
    is_any = end_servers(socket_paths)
    for path in socket_paths:
        if path != mine:
            stop.is_there(path, removes=True)
    if not is_any:
        say("no server is running for this store")
    return 0


def end_servers(socket_paths: Sequence[str]) -> bool:
    """Stop the running servers, and print a line for each. Return False if none runs. Raise ReadcacheError if a server
    does not end."""
    asked_to_stop = {path: pid for path in socket_paths if (pid := stop.send_signal(path, signal.SIGTERM)) is not None}
    deadline, left = time.monotonic() + _STOP_SECONDS, dict(asked_to_stop)
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        for path in [path for path in left if not stop.is_there(path)]:
            say(f"stopped process {left.pop(path)}")
    if left:
        pids = ", ".join(map(str, left.values()))
        raise ReadcacheError(f"still running {_STOP_SECONDS:.0f} seconds after being told to stop: kill {pids}")
    return bool(asked_to_stop)
