"""The words of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from readcache import __version__
from readcache.errors import UsageError


class _Parser(argparse.ArgumentParser):
    """One that complains in one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The options. UsageError; SystemExit(0) after --help and --version."""
    return _build().parse_args(argv)


def _build() -> _Parser:
    parser = _Parser(
        prog="readcache",
        allow_abbrev=False,
        description="Leaves out of tool results the lines that the agent can already see, and says where they stand.",
        epilog="READCACHE=off makes `run` a plain pass-through, READCACHE=advise makes it report and omit nothing. "
        "Exit status: 1 expected failure, 2 usage, 3 bug; `run` has the command's own.",
    )
    parser.add_argument("--version", action="version", version=f"readcache {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    context = _context_options()

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, parents=[context], help=text, description=text, allow_abbrev=False)

    run = add("run", "run one command through the session, print the reply, exit with the command's status")
    run.usage = "readcache run [options] (-c STRING | -- ARGV…)"
    run.add_argument("-c", metavar="STRING", help="the command, for bash -c")
    run.add_argument("--call-id", metavar="ID", help="the harness's name for this call; made up when not given")
    run.add_argument("--clip", metavar="HEAD[,TAIL]", help="characters a harness shows of an output ($READCACHE_CLIP)")
    run.add_argument("--advise", action="store_true", help="omit nothing, record what would have been omitted")
    add("log", "one line for each event of the session, newest last")
    explain = add("explain", "what was shown of a file, what is visible now, why its last read was or was not cut")
    explain.add_argument("path", metavar="PATH")
    stats = add("stats", "the counters: calls, characters, tokens saved, and each reason")
    stats.add_argument("--json", action="store_true", help="one JSON object")
    add("doctor", "check that everything needed is in order; exit 1 when something is broken")
    compacted = add("compacted", "tell the session that the harness compacted; prints JSON: rewrites, restored_id")
    compacted.add_argument("--keep", metavar="ID", nargs="*", action="extend", default=[], help="calls that stay")
    return parser


def _context_options() -> _Parser:
    options = _Parser(add_help=False)
    options.add_argument("--session", metavar="ID", help="the conversation ($READCACHE_SESSION)")
    options.add_argument("--store", metavar="FILE", help="SQLite file ($READCACHE_STORE; else in the state directory)")
    options.add_argument("--agent", metavar="ID", help="the reader inside the session ($READCACHE_AGENT; else main)")
    return options
