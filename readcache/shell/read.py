"""What a shell command reads and writes, from its text alone: `read_command`."""

from __future__ import annotations

import functools

from readcache.model.claims import OPAQUE, UNPARSED, Reading
from readcache.shell.prefilter import may_matter


@functools.lru_cache(maxsize=512)
def read_command(command: str, cwd: str, exit_code: int | None = 0) -> Reading:
    """What `command`, run by bash in directory `cwd`, is believed to print and write.

    `exit_code` is the command's, None when it is not known. Never raises: what cannot be told is `claims.OPAQUE`, what
    cannot be parsed `claims.UNPARSED`.
    """
    if not may_matter(command):
        return OPAQUE
    try:
        from readcache.shell.parse import parse_command
        from readcache.shell.walk import read

        node = parse_command(command)
        return UNPARSED if node is None else read(node, cwd, exit_code)
    except Exception:  # a guess that fails is no guess: RecursionError, or a bug of ours
        return OPAQUE
