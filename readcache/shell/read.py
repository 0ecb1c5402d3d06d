"""What a shell command reads and writes, from its text alone: `read_command`."""

from __future__ import annotations

import functools
from dataclasses import replace

from readcache.model.claims import OPAQUE, UNPARSED, WHOLE_TREE, Reading, Write
from readcache.shell.prefilter import may_matter

MOST_CHARS = 1_000_000  # of a command that is read; Linux takes no argument that is longer than 131,072


_NOT_READ = replace(OPAQUE, writes=(Write(WHOLE_TREE, 0, sure=False),))


def read_command(command: str, cwd: str, exit_code: int | None = 0) -> Reading:
    """What `command`, run by bash in directory `cwd`, is believed to print and write.

    `exit_code` is the command's, None when it is not known. Never raises: what cannot be told is `claims.OPAQUE`, what
    cannot be parsed `claims.UNPARSED`; the files that either may have written are named all the same.
    """
    try:
        return _read(command, cwd, exit_code not in (0, None))
    except Exception:  # not even its text can be looked at: Python is shutting down, and imports nothing any more
        return _NOT_READ


@functools.lru_cache(maxsize=512)
def _read(command: str, cwd: str, failed: bool) -> Reading:
    if len(command) > MOST_CHARS:
        return _NOT_READ
    if not may_matter(command):
        return OPAQUE
    from readcache.shell.parse import parse_command

    node = parse_command(command)
    if node is None:
        return replace(UNPARSED, writes=_loose_writes(command, cwd))
    try:
        from readcache.shell.walk import read

        return read(node, cwd, failed=failed)
    except Exception:  # it is too long, or a guess fails: RecursionError, or a bug of ours
        return replace(OPAQUE, writes=_loose_writes(command, cwd))


def _loose_writes(command: str, cwd: str) -> tuple[Write, ...]:
    """What is written by the commands in a script of which no more is known, or else whatever the script names."""
    from readcache.model.names import names_in
    from readcache.shell.walk import read_loose

    try:
        return read_loose(command, cwd)
    except Exception:  # too long again, or no shell
        return tuple(Write(name, 0, sure=False) for name in names_in(command))
