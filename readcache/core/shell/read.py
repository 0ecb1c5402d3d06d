"""Find the files that a shell command reads and writes, from its text only: `read_command`."""

from __future__ import annotations

import functools
import posixpath
from dataclasses import replace

from readcache.core.model.claims import OPAQUE, UNPARSED, Reading
from readcache.core.shell.prefilter import may_matter

MOST_CHARS = 1_000_000  # longer commands are not read; Linux accepts no argument of more than 131,072 bytes


def read_command(command: str, cwd: str) -> Reading:
    """Return the claims, writes and authored texts that are expected if bash runs `command` in directory `cwd`.

    Never raise. Return `claims.OPAQUE` for a command that cannot be understood, and `claims.UNPARSED` for one that
    cannot be parsed.
    """
    try:
        return _read(command, cwd)
    except Exception:  # Python is shutting down and cannot import modules any more
        return OPAQUE


@functools.lru_cache(maxsize=512)
def _read(command: str, cwd: str) -> Reading:
    if len(command) > MOST_CHARS or not may_matter(command):
        return OPAQUE
    from readcache.core.shell.parse import parse_command

    node = parse_command(command)
    if node is None:
        return UNPARSED
    try:
        from readcache.core.shell.walk import read

        return _with_parents(read(node, cwd))
    except Exception:  # too long, nested too deep (RecursionError), or a bug in readcache
        return OPAQUE


def _with_parents(reading: Reading) -> Reading:
    """Return the reading with a possible write to `a` for a write to `x/../a`: `x` is rarely a link."""
    parents = [replace(w, key=posixpath.normpath(w.key), is_certain=False) for w in reading.writes if "/../" in w.key]
    return replace(reading, writes=(*reading.writes, *parents)) if parents else reading
