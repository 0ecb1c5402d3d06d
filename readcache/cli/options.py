"""The options of `run`, and the reading of its arguments. Without argparse, whose import takes longer than the rest."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from getopt import GetoptError, getopt
from typing import NamedTuple

from readcache.core.model.errors import UsageError, did_you_mean


class Option(NamedTuple):
    """An option with a value: the value's name in the help, and the help text."""

    metavar: str
    help: str


# Options of all commands about a session or the store.
READER_OPTIONS = {
    "session": Option("ID", "the conversation's ID ($READCACHE_SESSION)"),
    "store": Option("FILE", "SQLite file or redis:// URL ($READCACHE_STORE; default: in the state directory)"),
    "agent": Option("ID", "the reader inside the session ($READCACHE_AGENT; default: main)"),
}
RUN_OPTIONS = {
    "call-id": Option("ID", "the harness's ID for this call (default: generated)"),
    "batch": Option("ID", "ID shared by parallel calls ($READCACHE_BATCH)"),
    "clip": Option("HEAD[,TAIL]", "characters of an output that the harness shows ($READCACHE_CLIP)"),
    "policy": Option("NAME", "default, delta or max ($READCACHE_POLICY)"),
    "protected": Option("GLOBS", "comma-separated globs of files never to omit or store ($READCACHE_PROTECTED)"),
}
# Options of the parts that stay enabled in a host: its hooks, and a server for its plugin.
HOST_OPTIONS = {
    **{name: RUN_OPTIONS[name] for name in ("policy", "protected")},
    "restore": Option("TOKENS", "tokens to restore after a compaction; 0: nothing ($READCACHE_RESTORE)"),
}
# Variables that a user sets. readcache itself sets other READCACHE_ variables, for the processes that it starts.
VARIABLES = {
    "READCACHE": "on (default); advise: omit nothing, record what would have been omitted; off: do nothing",
    "READCACHE_SESSION": "the conversation's ID; without it, nothing is recorded or omitted",
    "READCACHE_SESSION_FROM": "name of the host's variable that contains the ID, e.g. CODEX_THREAD_ID",
    "READCACHE_AGENT": "the reader inside the session (default: main)",
    "READCACHE_STORE": "SQLite file or redis:// URL (default: readcache.db in $XDG_STATE_HOME/readcache)",
    "READCACHE_POLICY": "default, delta or max",
    "READCACHE_PROTECTED": "comma-separated globs of files never to omit or store, in addition to the usual secrets",
    "READCACHE_RESTORE": "tokens to restore after a compaction (default: 7000; 0: nothing)",
    "READCACHE_CLEAR": "ABOVE:DOWN_TO in tokens: when to clear old results, in hosts that pass their messages on",
    "READCACHE_MODEL": "the model's name, which decides how many characters count as a token",
    "READCACHE_CLIP": "HEAD or HEAD,TAIL: characters of an output that the harness shows",
    "READCACHE_BATCH": "ID shared by parallel calls",
    "READCACHE_HOST": "the harness's name in `readcache gain`",
    "READCACHE_KEEP": "how long the default store keeps a session: 90d, 12h or forever (default: 30d)",
    "READCACHE_SERVER": "off: neither ask nor start the server that answers hooks and shims",
    "READCACHE_BASH": "the shell that `readcache-run` starts in a sandbox without bash",
}
# Seconds. A model's turn takes minutes, and a person may think for half an hour. sccache's server waits 10 minutes,
# Bazel's 3 hours.
IDLE_SECONDS = 1800
ADVISE = Option("", "omit nothing; record what would have been omitted")
RUN_USAGE = "readcache run [options] (-c STRING | [--] ARGV…)"
_LONG = ["help", "advise", *(f"{name}=" for name in (*READER_OPTIONS, *RUN_OPTIONS))]


def read_run(argv: Sequence[str]) -> tuple[str, dict[str, str]] | None:
    """Return (the command, the options by name, with "_" for "-") from the arguments after `run`, or None if they ask
    for help.

    The first argument that is not an option starts the command. Its own arguments may look like options of readcache.
    Raise UsageError for an unknown option, or if there is not exactly one command.
    """
    try:
        found, own = getopt(argv, "hc:", _LONG)
    except GetoptError as error:
        near = did_you_mean(f"--{error.opt}", [f"--{name.rstrip('=')}" for name in _LONG])
        raise UsageError(f"run: {error.msg}{near}; see readcache run --help") from None
    options = {name[2:].replace("-", "_"): value for name, value in found if name.startswith("--")}
    if "help" in options or ("-h", "") in found:
        return None
    if "advise" in options:
        options["advise"] = "yes"
    commands = [*(value for name, value in found if name == "-c"), *([shlex.join(own)] if own else [])]
    if len(commands) != 1:
        raise UsageError(f"run takes one command, -c STRING or ARGV…, not {len(commands)}; see readcache run --help")
    return commands[0], options
