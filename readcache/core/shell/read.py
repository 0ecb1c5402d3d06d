"""What a shell command reads and writes, from its text alone: `read_command`."""

from __future__ import annotations

import functools

from readcache.core.model.claims import OPAQUE, UNPARSED, Reading
from readcache.core.shell.prefilter import may_matter

MOST_CHARS = 1_000_000  # of a command that is read; Linux takes no argument longer than 131,072


def read_command(command: str, cwd: str) -> Reading:
    """What `command`, run by bash in directory `cwd`, is believed to print and write.

    Never raises: a command that cannot be understood is `claims.OPAQUE`, one that cannot be parsed `claims.UNPARSED`.
    """
    try:
        return _read(command, cwd)
    except Exception:  # Python is shutting down and imports nothing any more
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

        return read(node, cwd)
    except Exception:  # too long, nested too deep (RecursionError), or a bug of ours
        return OPAQUE
