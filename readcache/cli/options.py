"""The options that `run` takes, and how its words are read: without argparse, which takes longer than all else here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from readcache.model.errors import UsageError


class Option(NamedTuple):
    """An option with a value: the name of the value in the help, and the help."""

    metavar: str
    help: str


# Of every command but `demo`.
READER_OPTIONS = {
    "session": Option("ID", "the conversation ($READCACHE_SESSION)"),
    "store": Option("FILE", "SQLite file, or a redis:// URL ($READCACHE_STORE; else in the state directory)"),
    "agent": Option("ID", "the reader inside the session ($READCACHE_AGENT; else main)"),
}
RUN_OPTIONS = {
    "call-id": Option("ID", "the harness's name for this call; made up when not given"),
    "batch": Option("ID", "what the calls share that the model made at once ($READCACHE_BATCH)"),
    "clip": Option("HEAD[,TAIL]", "characters a harness shows of an output ($READCACHE_CLIP)"),
    "policy": Option("NAME", "default, delta or max ($READCACHE_POLICY)"),
}
# Seconds. A model's turn takes minutes, a person's thought half an hour; sccache's server waits for 10 minutes, Bazel's
# for 3 hours.
IDLE_SECONDS = 1800
ADVISE = Option("", "omit nothing, record what would have been omitted")
RUN_USAGE = "readcache run [options] (-c STRING | [--] ARGV…)"
_WITH_VALUE = {f"--{name}" for name in (*READER_OPTIONS, *RUN_OPTIONS)}


def read_run(argv: Sequence[str]) -> tuple[str, dict[str, str]] | None:
    """(the command, the options by name with "_" for "-") of the words after `run`. None: its help is asked for.

    The first word that is no option begins the command's own, which may look like options of ours. UsageError."""
    words, commands, options = iter(argv), list[str](), dict[str, str]()
    for word in words:
        name, equals, value = word.partition("=")
        if word in ("-h", "--help"):
            return None
        if word == "--" or not word.startswith("-"):
            own = [*words] if word == "--" else [word, *words]
            commands += [_join(own)] if own else []
        elif name in _WITH_VALUE:
            options[_field(name)] = value if equals else _value_of(name, words)
        elif word == "--advise":
            options["advise"] = "yes"
        elif word.startswith("-c"):
            commands.append(word[2:] or _value_of("-c", words))
        else:
            raise UsageError(f"run has no option {word}; see readcache run --help")
    if not commands:
        raise UsageError("run needs a command: -c STRING or ARGV…; see readcache run --help")
    if len(commands) > 1:
        raise UsageError("run takes one command, -c STRING or ARGV…; see readcache run --help")
    return commands[0], options


def _field(option: str) -> str:
    return option[2:].replace("-", "_")


def _value_of(option: str, words: Iterator[str]) -> str:
    for word in words:
        return word
    raise UsageError(f"{option} needs a value; see readcache run --help")


def _join(words: Sequence[str]) -> str:
    import shlex

    return shlex.join(words)
