"""The command line: `main`. Each command imports the modules that it needs itself."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from readcache.core.model.errors import ReadcacheError, UsageError
from readcache.process.settings import Settings, clip_sizes, read_settings, require_store

if TYPE_CHECKING:
    import argparse

BUG_STATUS = 3
_HARNESS_COMMANDS = ("compact", "compacted", "forget", "prune", "restore", "wrote")
# `log` is `log_command` in the module show. A command that is not listed here has a module of the same name.
_MODULES = dict.fromkeys(_HARNESS_COMMANDS, "harness") | {
    "clear": "sessions", "gain": "reports", "log": "show", "mcp": "serve", "off": "status",
    "on": "status", "replay": "reports", "report": "reports", "stats": "show", "uninit": "hosts",
    "verify": "explain", "watch": "show",
}  # fmt: skip
# Commands that report an invalid store themselves, or open none.
_DO_WITHOUT_STORE = (
    "clear", "demo", "doctor", "init", "mcp", "off", "on", "replay", "sessions", "shims", "uninit",
    "verify",
)  # fmt: skip
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # errors of a write to a full or broken device


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (default: this process's). Return the exit status.

    It is 1 for an expected failure, 2 for a usage error, and 3 for a bug, each with one line on stderr. `run` exits
    with the command's status.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _dispatch(arguments)
        if sys.stdout is not None:  # None: it was closed when this process started
            sys.stdout.flush()
        return status
    except UsageError as error:
        return _complain(str(error), 2)
    except ReadcacheError as error:
        return _complain(str(error), 1)
    except (BrokenPipeError, KeyboardInterrupt) as error:
        from readcache.process.child import end_like

        return end_like(-(signal.SIGPIPE if isinstance(error, BrokenPipeError) else signal.SIGINT))
    except SystemExit as end:  # --help and --version
        return end.code if isinstance(end.code, int) else 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
            return _lose_output(error)
        return _complain(f"a bug, please report it: {_where(error)}", BUG_STATUS)


def _complain(text: str, status: int) -> int:
    from readcache.cli.output import warn

    warn(text)
    return status


def _lose_output(error: OSError) -> int:
    """Report that stdout cannot be written any more. Return the exit status. Code that writes a named file reports its
    errors itself."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # without this, Python tries to write again when it exits, and prints an error of its own
    os.close(nowhere)
    return _complain(f"cannot write the output: {error.strerror}; make room, or send stdout elsewhere", 1)


def _where(error: Exception) -> str:
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    location = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{location}"


def _dispatch(argv: list[str]) -> int:
    if argv[:1] == ["run"]:
        return _run(argv[1:])
    if argv[:1] == ["hook"] and not {"-h", "--help"} & {*argv}:
        from readcache.hosts.hooks import hook

        hook(argv[1:], sys.stdin.buffer.read())
        return 0
    from readcache.cli.parser import parse_words

    if not argv:
        from readcache.cli.status import say_status

        return say_status(read_settings(os.environ))
    if argv[0] == "help":
        argv = [*argv[1:], "--help"]
    options = parse_words(argv)
    settings = read_settings(os.environ, vars(options))
    if settings.store and options.command not in _DO_WITHOUT_STORE:
        require_store(settings.store)
    module = import_module(f"readcache.cli.{_MODULES.get(options.command, options.command)}")
    command: Callable[[argparse.Namespace, Settings], int] = getattr(module, f"{options.command}_command")
    return command(options, settings)


def _run(argv: list[str]) -> int:
    """Run the command in the arguments after `run`. Return its exit status. Raise UsageError for an invalid option,
    before the command runs."""
    # An invalid variable only turns omissions off, because the agent's own commands share it. `doctor` reports it.
    from readcache.cli.options import read_run

    found = read_run(argv)
    if found is None:
        return _dispatch(["help", "run"])
    command, options = found
    clip_sizes(options.get("clip", ""))
    if options.get("store"):
        require_store(options["store"])
    if options.get("policy"):
        from readcache.core.model.policy import Policy

        Policy.named(options["policy"])
    from readcache.cli.run import run

    return run(command, read_settings(os.environ, options), options.get("call_id"))
