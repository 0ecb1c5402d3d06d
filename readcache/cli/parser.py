"""The commands and options of the command line."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from readcache import __version__
from readcache.cli.options import ADVISE, IDLE_SECONDS, READER_OPTIONS, RUN_OPTIONS, RUN_USAGE, VARIABLES, Option
from readcache.hosts import MODULES
from readcache.model.errors import UsageError
from readcache.model.policy import Budget
from readcache.report.gain import DIMENSIONS


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def parse_words(argv: Sequence[str]) -> argparse.Namespace:
    """The options. UsageError; SystemExit(0) after --help and --version."""
    return _build().parse_args(argv)


def _build() -> _Parser:
    parser = _Parser(
        prog="readcache",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Omits from tool results the lines that the agent can already see, and says where they are.",
        epilog="environment:\n"
        + "".join(f"  {name:23} {what}\n" for name, what in VARIABLES.items())
        + "\nexit status: 1 expected failure, 2 usage, 3 bug; `run` has the command's own",
    )
    parser.add_argument("--version", action="version", version=f"readcache {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    reader = _reader_options()

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return _add(commands, name, text, parents=[reader])

    _add(commands, "demo", "show on a sample what an agent sees of its commands, and why; leaves nothing behind")
    _add_replay(commands)
    run = add("run", "run one command through the session, print the reply, exit with the command's status")
    run.usage = RUN_USAGE
    run.add_argument("-c", metavar="STRING", help="a command for bash -c; default: the words after the options")
    _add_options(run, RUN_OPTIONS)
    run.add_argument("--advise", action="store_true", help=ADVISE.help)
    log = add("log", "one line for each event of the session, newest last")
    explain = add("explain", "what was shown of a file, what is visible now, why its last read was or was not cut")
    explain.add_argument("path", metavar="PATH", type=_path)
    stats = add("stats", "the counters: calls, characters, tokens saved, and each reason")
    stats.add_argument("--json", action="store_true", help="one JSON object")
    for command in (log, explain, stats):
        command.add_argument("--at", metavar="CALL", help="show the state right after this call; `log` lists the ids")
    text = "what the store holds: a line for each session, newest last"
    add("sessions", text).add_argument("--json", action="store_true", help="one JSON object")
    clear = add("clear", "take sessions out of the store: those that are named or old, or all of them")
    clear.add_argument("sessions", metavar="SESSION", nargs="*", help="a session's id")
    clear.add_argument(
        "--older-than", metavar="WHEN", help="remove sessions whose last event is older: an age (36h, 7d, 2w) or a date"
    )
    clear.add_argument("--dry-run", action="store_true", help="print what would be removed, and remove nothing")
    _add_gain(add("gain", "what was saved, from the store: today, 7 days, 30 days, all; by host, tool and reason"))
    report = add(
        "report", "a session as one HTML page: what was shown, what was left out and why, what was in view when"
    )
    report.usage = "readcache report [SESSION | FILE] -o OUT.html [--policy NAME]"
    report.add_argument("source", metavar="SESSION_OR_FILE", nargs="?", help="a session, or a transcript of any host")
    report.add_argument("-o", "--output", metavar="FILE", type=_path, required=True, help="the page; - is stdout")
    report.add_argument("--policy", metavar="NAME", help="for a transcript: default, delta or max")
    verify = add("verify", "prove every omission by the specification; exit 1 when one is wrong")
    verify.usage = "readcache verify [SESSION | STORE | TRANSCRIPT] [--policy NAME]"
    verify.add_argument("source", metavar="SOURCE", nargs="?", help="a session, a store's file, or transcripts")
    verify.add_argument("--policy", metavar="NAME", help="for a transcript: default, delta or max")
    doctor = add("doctor", "check that everything needed is in order; exit 1 when something is broken")
    doctor.add_argument("--shims", metavar="DIR", type=_path, help="check these shims too")
    doctor.add_argument(
        "--host", metavar="HOST", action="append", default=[], help="fail unless this host is enabled here"
    )
    compacted = add("compacted", "tell the session that the harness compacted; prints JSON: rewrites, restored_id")
    compacted.add_argument("--keep", metavar="ID", nargs="*", action="extend", default=[], help="calls that stay")
    compacted.add_argument(
        "--restored", metavar="FILE", type=_path, help="the plan that was put back, from restore --json; - for stdin"
    )
    restore = add("restore", "what to put back when the harness compacts: the section, or the plan as JSON")
    restore.add_argument("--keep", metavar="ID", nargs="*", action="extend", default=[], help="calls that will stay")
    restore.add_argument(
        "--messages", metavar="FILE", type=_path, help="the message list before the compaction, as JSON; - for stdin"
    )
    restore.add_argument("--json", action="store_true", help="one JSON object: items, left_out, text (the section)")
    for field in dataclasses.fields(Budget):
        option = f"--{field.name.replace('_', '-')}"
        restore.add_argument(option, metavar="N", type=_count, default=field.default, help=f"(default {field.default})")
    prune = add("prune", "print a message list without what is repeated, outdated or too long; tell the session")
    compact = add("compact", "print a message list with its old turns replaced by a summary; tell the session")
    for command in (prune, compact):
        command.add_argument("file", metavar="FILE", type=_path, help="the message list, as JSON; - for stdin")
    step = compact.add_mutually_exclusive_group()
    step.add_argument("--request", action="store_true", help="print the messages that ask a model for the summary")
    step.add_argument("--summary", metavar="FILE", type=_path, help="the model's answer (default: do without it)")
    wrote = add("wrote", "tell the session that the agent's own write or edit tool succeeded on a file")
    wrote.add_argument("path", metavar="PATH", type=_path)
    wrote.add_argument(
        "--content-file", metavar="FILE", type=_path, help="the whole file as the agent wrote it; - for stdin"
    )
    settle = add("settle", "tell the session what the harness finally showed of a call, after cutting or redacting it")
    settle.add_argument("call_id", metavar="CALL_ID")
    settle.add_argument("--text-file", metavar="FILE", type=_path, default="-", help="that text (stdin)")
    rewind = add("rewind", "tell the session that everything after a call is gone from the conversation")
    rewind.add_argument("call_id", metavar="CALL_ID")
    add("sync", "tell the session what is in view: the message list, as JSON on stdin; prints JSON: what to rewrite")
    _add_hosts(commands)
    _add(commands, "off", "omit nothing from now on, in agents that run already too, until `readcache on`")
    _add(commands, "on", "the end of `readcache off`")
    serve = _add(commands, "serve", "answer requests, a line of JSON each: see docs/protocol.md")
    _add_options(serve, {"store": READER_OPTIONS["store"]})
    serve.add_argument(
        "--session",
        metavar="ID",
        dest="sessions",
        action="append",
        help="--socket for sandboxes: serve the calls of this conversation alone; may be repeated",
    )
    serve.add_argument(
        "--socket",
        metavar="PATH",
        type=_path,
        help="listen on a Unix socket, for many clients; default: stdin and stdout",
    )
    serve.add_argument(
        "--run", action="store_true", help="also allow run and read on the socket (stdin always allows them)"
    )
    serve.add_argument("--on-demand", action="store_true", help="as hooks start it: serves short-lived clients")
    idle = f"--on-demand: until it ends ({IDLE_SECONDS})"
    serve.add_argument("--idle", metavar="SECONDS", type=_count, help=idle)
    serve.add_argument("--stop", action="store_true", help="stop the servers of this store that were started on demand")
    _add_options(serve, {name: RUN_OPTIONS[name] for name in ("policy", "clip", "protected")})
    serve.add_argument("--advise", action="store_true", help=ADVISE.help)
    mcp = add("mcp", "an MCP server over stdio: read, run, write, edit and more; needs readcache[mcp]")
    mcp.add_argument(
        "--root",
        metavar="DIR",
        type=_path,
        default=".",
        help="project directory for clients that name no roots (default: .)",
    )
    mcp.add_argument(
        "--one-reader",
        action="store_true",
        help="one conversation uses this server, and its host calls `compacted`; else nothing is omitted",
    )
    mcp.add_argument("--hooks", action="store_true", help=argparse.SUPPRESS)  # see readcache/serve/mcp/server.py
    _add_options(mcp, {name: RUN_OPTIONS[name] for name in ("clip", "policy", "protected")})
    mcp.add_argument("--horizon", metavar="TOKENS", type=_count, help="forget results after this many later tokens")
    shims = add("shims", "PATH shims for a sandbox: install or uninstall them, or print what its shell is to eval")
    shims.usage = "readcache shims (install DIR [--tools NAME…] | uninstall DIR | env DIR [--launch] [--policy NAME])"
    shims.add_argument("action", choices=("install", "uninstall", "env"), metavar="ACTION")
    shims.add_argument("dir", metavar="DIR", type=_path)
    shims.add_argument("--tools", metavar="NAME", nargs="*", action="extend", default=[], help="(cat head tail sed nl)")
    _accept_former(shims, "--compile", "--static")
    shims.add_argument("--launch", action="store_true", help="env: for the harness's environment, through BASH_ENV")
    shims.add_argument("--whole-command", action="store_true", help="env --launch: through `readcache run`")
    _add_options(shims, {name: RUN_OPTIONS[name] for name in ("policy", "protected")})
    return parser


def _add(commands: argparse._SubParsersAction[_Parser], name: str, text: str, **more: Any) -> argparse.ArgumentParser:
    return commands.add_parser(name, help=text, description=text, allow_abbrev=False, **more)


def _add_replay(commands: argparse._SubParsersAction[_Parser]) -> None:
    text = "what recorded conversations would have been spared: files or directories of transcripts of any known host"
    replay = _add(commands, "replay", text)
    replay.usage = "readcache replay PATH… [--policy NAME]… [--since WHEN] [--json]"
    replay.add_argument(
        "paths", metavar="PATH", type=_path, nargs="+", help="a transcript, or a directory such as ~/.claude/projects"
    )
    replay.add_argument(
        "--policy", metavar="NAME", action="append", help="default, delta or max; give several to compare them"
    )
    replay.add_argument("--since", metavar="WHEN", help="a date (2026-11-01) or an age (36h, 7d, 2w)")
    replay.add_argument("--json", action="store_true", help="one JSON object")


def _add_gain(gain: argparse.ArgumentParser) -> None:
    gain.usage = (
        "readcache gain [--by day|host|tool|reason|session] [--since WHEN] [--until WHEN] [--price MONEY] "
        "[--json | --short]"
    )
    gain.add_argument("--by", choices=DIMENSIONS, metavar="WHAT", help=f"{', '.join(DIMENSIONS)}: rows of that alone")
    gain.add_argument("--since", metavar="WHEN", help="a date (2026-11-01) or an age (36h, 7d, 2w)")
    gain.add_argument("--until", metavar="WHEN", help="the same; a date is the last day included")
    gain.add_argument("--price", metavar="MONEY", help="dollars per million uncached input tokens, to show money")
    form = gain.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object")
    form.add_argument("--short", action="store_true", help="one line for today, for a status bar")


def _add_hosts(commands: argparse._SubParsersAction[_Parser]) -> None:
    """`init`, `uninit` and `hook`."""
    init = _add(commands, "init", "switch a host on: its settings are changed, and each change is printed")
    uninit = _add(commands, "uninit", "take out of a host's settings what init put there")
    policy = "[--policy NAME] [--protected GLOBS]"
    init.usage = f"readcache init HOST [--project | --user] [--dry-run] [--on | --advise | --off] {policy}"
    uninit.usage = "readcache uninit HOST [--project | --user] [--dry-run]"
    for command in (init, uninit):
        command.add_argument("host", metavar="HOST", help=", ".join(MODULES))
        place = command.add_mutually_exclusive_group()
        place.add_argument("--project", action="store_true", help="for this directory's project (default)")
        place.add_argument("--user", action="store_true", help="for all of this user's projects")
        command.add_argument("--dry-run", action="store_true", help="print the changes without making them")
    mode = init.add_mutually_exclusive_group()
    mode.add_argument("--on", action="store_true", help="omit lines even where the host's default mode is advise")
    mode.add_argument("--advise", action="store_true", help=ADVISE.help)
    mode.add_argument("--off", action="store_true", help="what is put there does nothing")
    _add_options(init, {name: RUN_OPTIONS[name] for name in ("policy", "protected")})
    _accept_former(init, "--compile", "--static")
    text = "answer one event of a host's hooks: JSON on stdin, JSON on stdout, nothing when anything fails"
    hook = _add(commands, "hook", text)
    hook.usage = "readcache hook HOST [--advise | --off] [--policy NAME] [--protected GLOBS] [--store FILE]"
    hook.add_argument("host", metavar="HOST", help=", ".join(MODULES))
    hook.add_argument("--advise", action="store_true", help=ADVISE.help)
    hook.add_argument("--off", action="store_true", help="answer nothing")
    _add_options(
        hook, {**{name: RUN_OPTIONS[name] for name in ("policy", "protected")}, "store": READER_OPTIONS["store"]}
    )


def _accept_former(command: argparse.ArgumentParser, *options: str) -> None:
    """Options of the previous version, accepted without effect."""
    for option in options:
        command.add_argument(option, action="store_true", help=argparse.SUPPRESS)


def _count(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word!r} is not a number of 0 or more")
    return int(word)


def _path(word: str) -> str:
    """An empty path, as from an unset variable, would mean the working directory."""
    if not word:
        raise argparse.ArgumentTypeError("the path is empty: give one")
    return word


def _reader_options() -> _Parser:
    options = _Parser(add_help=False)
    _add_options(options, READER_OPTIONS)
    return options


def _add_options(parser: argparse.ArgumentParser, options: Mapping[str, Option]) -> None:
    for name, option in options.items():
        parser.add_argument(f"--{name}", metavar=option.metavar, help=option.help)
