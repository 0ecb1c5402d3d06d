"""A tool that the agent's own shell called: what of that call can be told from its words alone, without its files.

Shims ask this in the tool's own process, and the server for a client that has no Python.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from readcache.model.claims import Reading

SINK = "READCACHE_SINK"  # "PID mnt_id:N ino:N KIND SHELL", see shims/agent-shell.sh
SHIMS = "shims"  # the host, where nobody named another one
_SEDS = ("sed", "gsed")


def is_own_command(sink: str, caller: Sequence[str]) -> bool:
    """False where the shell that called, by its command line, runs a script, or a command whose output a harness
    parses. `sink`: what it wrote down."""
    from readcache.shell.never import is_answer

    if sink.endswith(" command sh") and not any(re.fullmatch("-[a-z]*c", word) for word in caller[1:3]):
        return False  # a script: what else it prints is not known; bash has told it in agent-shell.sh
    return not any(is_answer(word) for word in caller)


def read_tool(tool: str, args: Sequence[str], cwd: str) -> Reading | None:
    """What running the tool is believed to print: lines of files and nothing else. None: in doubt."""
    from readcache.model.claims import FileLines, Literal, Reading
    from readcache.shell.arguments import Arg, CannotTell, Program
    from readcache.shell.readers import READERS
    from readcache.shell.streams import Stream

    if any(arg.startswith("-") and "i" in arg for arg in args) and tool in _SEDS:
        return None  # `sed -i`
    # A `~` that comes here is a part of the name: the shell has dealt with the others.
    words = tuple(Arg(arg, f"./{arg}" if arg.startswith("~") else arg) for arg in args)
    try:
        "".join((cwd, *args)).encode()  # names that are not UTF-8 cannot be told to a model
        claims = READERS[tool](Program(tool, words, Stream(), cwd))
    except (CannotTell, KeyError, UnicodeEncodeError):
        return None
    reading = Reading(claims)
    return reading if reading.keys and all(isinstance(c, (FileLines, Literal)) for c in claims) else None


def batch_of(sink: str) -> str:
    """The reads of one command are delivered at once; of a shell that stays, each command is taken for itself."""
    return f"shell {sink}" if sink.split()[-2] == "command" else ""
