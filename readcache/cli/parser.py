"""The commands and options of the command line."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from typing import Any, NoReturn

from readcache import __version__
from readcache.cli.options import ADVISE, HOST_OPTIONS, IDLE_SECONDS, READER_OPTIONS, RUN_OPTIONS, RUN_USAGE, VARIABLES
from readcache.cli.output import in_columns
from readcache.core.model.errors import UsageError, did_you_mean
from readcache.core.model.limits import MOST_COUNT, whole_number
from readcache.core.model.policy import Budget
from readcache.hosts import MODULES
from readcache.report import DIMENSIONS

# Options that several commands have.
_ADVISE, _JSON = ("--advise", ADVISE.help), ("--json", "print one JSON object")
_DRY_RUN = "--dry-run", "print the changes without making them"
_HTML = "--html FILE", "write the same as a web page; - is stdout"
_SINCE = "--since WHEN", "a date (2026-11-01) or an age (36h, 7d, 2w)"
_AT = "--at CALL", "show the state right after this call; `log` lists the IDs"
_POLICY = "--policy NAME", "policy for a transcript: default, delta or max"
_HOST = "host HOST", ", ".join(MODULES)
_MESSAGES = "file FILE", "the message list as JSON; - for stdin"
_SEVERAL: dict[str, Any] = {"nargs": "*", "action": "extend", "default": []}
# Commands of the first builds -> the replacement. To be removed in 0.2.0.
_REMOVED = {
    **{name: f"call `{name}` of `readcache serve`" for name in ("settle", "rewind", "sync")},
    "completion": "use `readcache help`",
}


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def parse_words(argv: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line. Raise UsageError if it is invalid, and SystemExit(0) after --help and
    --version."""
    parser, commands = command_parsers()
    name = argv[0]
    if name.startswith("-") and name not in parser._option_string_actions:
        parser.error(f"{name} stands before the command: give the command first")
    if name in _REMOVED:
        parser.error(f"{name} was removed: {_REMOVED[name]}")
    if not name.startswith("-") and name not in commands:
        parser.error(f"unknown command {name!r}{did_you_mean(name, commands)}")
    options, unknown = parser.parse_known_args(argv)
    if unknown:
        near = did_you_mean(unknown[0].partition("=")[0], commands[name]._option_string_actions)
        commands[name].error(f"unrecognized arguments: {' '.join(unknown)}{near}")
    return options


def command_parsers() -> tuple[_Parser, dict[str, _Parser]]:
    """Return the parser of the whole command line, and the parser of each command by name."""
    parser = _Parser(prog="readcache", allow_abbrev=False, add_help=False)
    commands, rows = dict[str, _Parser](), list[tuple[str, str]]()
    parser.usage = "readcache [COMMAND] [options]"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = (
        "Shorten tool results: replace lines that the agent can already see with a\nmarker that says where they are."
        " Without a command, show the current status.\nRun `readcache help COMMAND` for options and an example."
    )
    added = parser.add_subparsers(
        dest="command", required=True, prog="readcache", parser_class=_Parser, help=argparse.SUPPRESS
    )

    def alone(name: str, text: str, example: str) -> _Parser:
        rows.append((f"{name:10}", text))
        epilog = f"example: readcache {name} {example}".rstrip()
        commands[name] = added.add_parser(name, help=text, description=text, epilog=epilog, allow_abbrev=False)
        return commands[name]

    def add(name: str, text: str, example: str) -> _Parser:
        command = alone(name, text, example)
        _shared(command, *READER_OPTIONS)
        return command

    for title, add_commands in _GROUPS.items():
        rows.clear()
        add_commands(alone, add)
        parser.add_argument_group(title, in_columns(rows, indent=2))
    general = parser.add_argument_group("options")
    general.add_argument("-h", "--help", action="help", help="show this help message and exit")
    general.add_argument("--version", action="version", version=f"readcache {__version__}", help="show the version")
    parser.add_argument_group("environment", in_columns(VARIABLES.items(), indent=2))
    parser.epilog = "exit status: 1 expected failure, 2 usage error, 3 bug;\n`run` exits with the command's status"
    return parser, commands


def _add_beginnings(alone: Any, add: Any) -> None:
    demo = alone("demo", "show on sample files what an agent sees, and why", "--keep sample")
    _value(demo, "--keep DIR", "directory in which to keep the sample files (default: keep nothing)")
    init = alone("init", "enable readcache for an agent, or ask about those found here", "claude-code")
    uninit = alone("uninit", "undo what init changed in an agent's settings", "claude-code --dry-run")
    _value(init, *_HOST, nargs="?")
    _value(uninit, *_HOST, nargs="?")
    for command in (init, uninit):
        scope = command.add_mutually_exclusive_group()
        _flag(scope, "--project", "for everyone in this project, in settings that a team can commit")
        _flag(scope, "--user", "for you, in all your projects (default)")
        _flag(command, *_DRY_RUN)
    _flag(uninit, "--all", "remove everything except the package: hosts, shims, servers, stored data")
    _flag(uninit, "--yes", "with --all: do not ask")
    _flag(init, "--all-found", "enable every agent that is found on this machine; do not ask")
    mode = init.add_mutually_exclusive_group()
    _flag(mode, "--on", "omit lines even if the host's default mode is advise")
    _flag(mode, *_ADVISE)
    _flag(mode, "--off", "install readcache switched off, so that it does nothing")
    _shared(init, *HOST_OPTIONS)
    _accept_former(init, "--compile", "--static")
    alone("off", "stop omitting lines, also in running agents", "")
    alone("on", "undo `readcache off`", "")
    text = "check the installation; exit 1 if something is broken"
    doctor = add("doctor", text, "--host claude-code")
    _value(doctor, "--shims DIR", "also check the shims in this directory")
    _value(doctor, "--host HOST", "check only this host; fail unless it is enabled here", action="append", default=[])
    _flag(doctor, "--scrub", "remove secrets and lines of protected files from the store instead")
    _flag(doctor, "--fire", "run each host with a scripted model to prove that the model gets markers")


def _add_looks(alone: Any, add: Any) -> None:
    gain = add("gain", "report savings by time, host, tool and reason", "--by day --since 7d")
    _value(gain, "--by WHAT", f"group only by this: {', '.join(DIMENSIONS)}", choices=DIMENSIONS)
    _value(gain, *_SINCE)
    _value(gain, "--until WHEN", "a date, which is included, or an age")
    _value(gain, "--price MONEY", "price in dollars per million uncached input tokens, to show money")
    _value(gain, "--model NAME", "model whose prices count, from the table of `readcache replay`")
    form = gain.add_mutually_exclusive_group()
    _flag(form, *_JSON)
    _flag(form, "--short", "print one line for a status bar: of today, unless --since is given")
    _value(form, *_HTML)
    replay = alone("replay", "estimate savings from your recorded conversations", "~/.claude/projects")
    text = "a transcript or a directory of them (default: where hosts keep them)"
    _value(replay, "paths PATH", text, nargs="*")
    _value(replay, "--policy NAME", "default, delta or max; repeat the option to compare policies", action="append")
    text = "compact:N, clear:N:M (tokens, such as 160k), mask:RESULTS, anthropic or gemini-cli; may be repeated"
    _value(replay, "--conversation WAY", text, action="append")
    _value(replay, "--by WHAT", "one row for each session, day or project", choices=("session", "day", "project"))
    _value(replay, "--model NAME", "model whose prices count (default: the model that a transcript names)")
    _value(replay, "--prices FILE", "your own prices as JSON: dollars per million tokens, see docs/measuring.md")
    _value(replay, *_SINCE)
    report = add("report", "write a web page of a session: what was shown or omitted, and why", "-o page.html")
    _value(report, "source SESSION_OR_FILE", "a session, or a transcript of any host", nargs="?")
    _value(report, "-o --output FILE", "the page; - is stdout (default: report.html in the state directory)")
    add("watch", "follow a running agent's calls live; needs readcache[watch]", "--session chat-17")
    stats = add("stats", "print a session's counters: calls, characters, tokens, reasons", "--json")
    log = add("log", "list a session's events, newest last", "--session chat-17")
    explain = add("explain", "explain what an agent was shown of a file and can still see", "app.py --at call_7")
    _value(explain, "path PATH", "the file")
    for command in (log, explain, stats):
        _value(command, *_AT)
    verify = add("verify", "check every omission; exit 1 if one is wrong", "chat-17")
    _value(verify, "source SOURCE", "a session, the file of a store, or transcripts", nargs="?")
    for command in (report, verify):
        _value(command, *_POLICY)
    sessions = add("sessions", "list the sessions in the store, newest last", "")
    form = replay.add_mutually_exclusive_group()
    _value(form, *_HTML)
    for command in (form, stats, sessions):
        _flag(command, *_JSON)
    clear = add("clear", "delete sessions from the store: by ID, by age, or all", "--older-than 7d --dry-run")
    _value(clear, "sessions SESSION", "ID of a session to delete", nargs="*")
    text = "delete sessions whose last event is older: an age (36h, 7d, 2w) or a date"
    _value(clear, "--older-than WHEN", text)
    _flag(clear, "--all", "delete all sessions; asks first (default on a terminal)")
    _flag(clear, "--yes", "with --all: do not ask")
    _flag(clear, "--dry-run", "print what would be deleted without deleting it")
    text = "remove the text of one call from the store"
    _value(add("forget", text, "call_7 --session chat-17"), "call CALL", "ID of the call; `log` lists the IDs")


def _add_runs(alone: Any, add: Any) -> None:
    run = add("run", "run a command through a session; exit with the command's status", "--session chat-17 cat app.py")
    run.usage = RUN_USAGE
    _value(run, "-c STRING", "a command for bash -c (default: the arguments after the options)")
    _shared(run, *RUN_OPTIONS)
    _flag(run, *_ADVISE)
    shims = add("shims", "install or remove PATH shims for a sandbox, or print its variables", "install shims")
    shims.usage = "readcache shims (install DIR [--tools NAME…] | uninstall DIR | env DIR [--launch] [--policy NAME])"
    _value(shims, "action ACTION", "install, uninstall or env", choices=("install", "uninstall", "env"))
    _value(shims, "dir DIR", "the directory of the shims")
    _value(shims, "--tools NAME", "tools to shim (default: cat head tail sed nl)", **_SEVERAL)
    _accept_former(shims, "--compile", "--static")
    _flag(shims, "--launch", "with env: print the harness's environment, which uses BASH_ENV")
    _flag(shims, "--whole-command", "with env --launch: pass each command to `readcache run` as a whole")
    _shared(shims, "policy", "protected")
    hook = alone("hook", "answer one hook event as JSON; print nothing on failure", "claude-code <event.json")
    _value(hook, *_HOST)
    _flag(hook, *_ADVISE)
    _flag(hook, "--off", "answer nothing")
    _shared(hook, *HOST_OPTIONS, "store")
    text = "serve JSON-RPC 2.0 requests; see docs/protocol.md"
    serve = alone("serve", text, "--socket /tmp/readcache.sock")
    text = "with --socket: serve only sandbox calls of this conversation; may be repeated"
    _value(serve, "--session ID", text, dest="sessions", action="append")
    _value(serve, "--socket PATH", "listen on a Unix socket, for many clients (default: stdin and stdout)")
    _flag(serve, "--run", "also allow run and read on the socket (stdin always allows them)")
    text = "on stdin: the client's files are on this machine and may be restored"
    _flag(serve, "--local", text)
    _flag(serve, "--on-demand", "serve short-lived clients, as the server that hooks start")
    _value(serve, "--idle SECONDS", f"with --on-demand: seconds without clients until exit (default: {IDLE_SECONDS})")
    _value(serve, "--metrics ADDRESS", "address for Prometheus, e.g. 127.0.0.1:9464; needs readcache[metrics]")
    _flag(serve, "--start", "start the on-demand server if needed; print its socket, for a plugin")
    _flag(serve, "--stop", "stop the on-demand servers of this store")
    _shared(serve, "store", "clip", *HOST_OPTIONS)
    _flag(serve, *_ADVISE)
    mcp = add("mcp", "run an MCP server over stdio; needs readcache[mcp]", "--root .")
    _value(mcp, "--root DIR", "project directory for clients that name no roots (default: .)", default=".")
    text = "omit lines; only for one conversation whose host calls `compacted`"
    _flag(mcp, "--one-reader", text)
    _accept_former(mcp, "--hooks")
    _shared(mcp, "clip", "policy", "protected")
    _value(mcp, "--horizon TOKENS", "forget results after this many later tokens")


def _add_tellings(_: Any, add: Any) -> None:
    compacted = add("compacted", "record a compaction; print replacement texts as JSON", "--keep call_6 call_7")
    _value(compacted, "--keep ID", "IDs of the calls that stay", **_SEVERAL)
    _value(compacted, "--restored FILE", "the plan that was restored, from `restore --json`; - for stdin")
    restore = add("restore", "print the lines to restore after a compaction", "--keep call_7 --json")
    _value(restore, "--keep ID", "IDs of the calls that will stay", **_SEVERAL)
    _value(restore, "--messages FILE", "the message list before the compaction, as JSON; - for stdin")
    _flag(restore, "--json", "print one JSON object: items, left_out, text (the section)")
    for field in dataclasses.fields(Budget):
        option = f"--{field.name.replace('_', '-')} N"
        _value(restore, option, f"(default: {field.default})", default=field.default)
    text = "print a message list without repeated, outdated or oversized parts"
    prune = add("prune", text, "messages.json")
    text = "print a message list with its old turns replaced by a summary"
    compact = add("compact", text, "messages.json --summary summary.txt")
    for command in (prune, compact):
        _value(command, *_MESSAGES)
    step = compact.add_mutually_exclusive_group()
    _flag(step, "--request", "print the messages that ask a model for the summary")
    _value(step, "--summary FILE", "the model's answer (default: no summary)")
    recall = add("recall", "print the result of an earlier call as the agent was shown it", "7f3a91.12 30-90")
    _value(recall, "name NAME", "the name in a marker or a note")
    _value(recall, "lines FIRST-LAST", "only these lines", nargs="?")
    wrote = add("wrote", "record a file written by the agent's own tool", "app.py")
    _value(wrote, "path PATH", "the file")
    _value(wrote, "--content-file FILE", "the whole file as the agent wrote it; - for stdin")


_GROUPS = {
    "getting started": _add_beginnings,
    "inspecting": _add_looks,
    "hosts and sandboxes": _add_runs,
    "for harnesses": _add_tellings,
}


def _flag(parser: Any, name: str, text: str) -> None:
    parser.add_argument(name, action="store_true", help=text)


def _value(parser: Any, words: str, text: str, **how: Any) -> None:
    """Add an argument with a value. `words`: its names, then its metavar. The metavar decides the type."""
    *names, metavar = words.split()
    if metavar in ("FILE", "DIR", "PATH"):
        how.setdefault("type", _path)
    elif metavar in ("N", "SECONDS", "TOKENS"):
        how.setdefault("type", _count)
    parser.add_argument(*names, metavar=metavar, help=text, **how)


def _shared(parser: Any, *names: str) -> None:
    """Add options that several commands share."""
    for name in names:
        option = {**READER_OPTIONS, **RUN_OPTIONS, **HOST_OPTIONS}[name]
        more = {"type": str} if name == "restore" else {}  # `Settings` has it as a text, because the environment does
        _value(parser, f"--{name} {option.metavar}", option.help, **more)


def _accept_former(command: Any, *options: str) -> None:
    """Add options of the previous version, which have no effect."""
    for option in options:
        _flag(command, option, argparse.SUPPRESS)


def _count(word: str) -> int:
    if (number := whole_number(word)) is None:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number from 0 to {MOST_COUNT:,}")
    return number


def _path(word: str) -> str:
    """Return the path. Raise ArgumentTypeError if it is empty."""
    # An empty path, as from an unset variable, would mean the working directory.
    if not word:
        raise argparse.ArgumentTypeError("the path is empty: give one")
    return word
