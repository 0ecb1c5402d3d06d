"""The command line: `main`. What a command needs is imported by that command."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from readcache.cli.settings import Settings, clip_sizes, read_settings
from readcache.errors import ReadcacheError, UsageError

if TYPE_CHECKING:
    import argparse

BUG_STATUS = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line (default: this process's); returns the exit status.

    2 for usage, 1 for an expected failure, 3 for a bug, each with one line on stderr; `run` has the command's status.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _dispatch(arguments)
        if sys.stdout is not None:  # None: it was closed when we were started
            sys.stdout.flush()
        return status
    except UsageError as error:
        return _complain(str(error), 2)
    except ReadcacheError as error:
        return _complain(str(error), 1)
    except (BrokenPipeError, KeyboardInterrupt) as error:
        from readcache.cli.child import end_like

        return end_like(-(signal.SIGPIPE if isinstance(error, BrokenPipeError) else signal.SIGINT))
    except SystemExit as end:  # --help and --version
        return end.code if isinstance(end.code, int) else 0
    except Exception as error:
        return _complain(f"a bug, please report it: {_where(error)}", BUG_STATUS)


def _complain(text: str, status: int) -> int:
    print("readcache: " + " ".join(text.split()), file=sys.stderr)
    return status


def _where(error: Exception) -> str:
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def _dispatch(argv: list[str]) -> int:
    if argv[:1] == ["run"]:
        return _run(argv[1:])
    from readcache.cli.parser import parse_words

    options = parse_words(argv)
    settings = read_settings(os.environ, vars(options))
    if options.command == "shims":
        return _shims(options, settings)
    if options.command == "doctor":
        from readcache.cli.doctor import doctor

        return doctor(settings, options.shims)
    from readcache.cli import compaction, demo, explain, show  # with `Session`, which takes long to import

    if options.command == "demo":
        return demo.demo()
    if options.command == "compacted":
        return compaction.compacted(settings, options.keep, options.restored)
    if options.command == "restore":
        from readcache.policy import Budget

        budget = Budget(options.max_files, options.max_tokens, options.max_tokens_per_file)
        return compaction.restore(settings, options.keep, budget, as_json=options.json)
    if options.command == "explain":
        return explain.explain(settings, options.path)
    if options.command == "log":
        return show.log(settings)
    return show.stats(settings, as_json=options.json)


def _shims(options: argparse.Namespace, settings: Settings) -> int:
    from readcache.cli import shims

    if options.action == "install":
        return shims.install(options.dir, options.tools, compiled=options.compile)
    if options.action == "uninstall":
        return shims.uninstall(options.dir)
    return shims.env(options.dir, settings, launch=options.launch, whole_command=options.whole_command)


def _run(argv: list[str]) -> int:
    """The command's own words are taken out before anything else looks at them: they may look like our options."""
    command, argv = _take_command(argv)
    if argv in ([], ["--advise"]):  # nothing for argparse, which would cost every command its time to import
        settings, call_id = read_settings(os.environ, {"advise": bool(argv)}), None
    else:
        from readcache.cli.parser import parse_words

        options = parse_words(["run", *argv])
        settings, call_id = read_settings(os.environ, vars(options)), options.call_id
        clip_sizes(options.clip or "")
        if options.c is not None:  # `-cSTRING`
            if command is not None:
                raise UsageError("run takes one of -c STRING and -- ARGV…, once")
            command = options.c
    if command is None:
        raise UsageError("run needs a command: -c STRING or -- ARGV…")
    from readcache.cli.run import run

    return run(command, settings, call_id)


def _take_command(argv: list[str]) -> tuple[str | None, list[str]]:
    """(the command that stands in `argv`, the rest)."""
    for at, word in enumerate(argv):
        if word == "-c" and at + 1 < len(argv):
            return argv[at + 1], argv[:at] + argv[at + 2 :]
        if word == "--" and at + 1 < len(argv):
            import shlex

            return shlex.join(argv[at + 1 :]), argv[:at]
    return None, argv
