"""The working directory of a shell that stays from call to call, as far as its commands tell."""

from __future__ import annotations

import os
import re

_MAY_MOVE = re.compile(r"\b(?:cd|pushd|popd|source|eval|exec|exit)\b|(?:^|[;&|({]|\s)\.\s")
_CD_FIRST = re.compile(r"\s*cd\s+(?:--\s+)?([\w./+-]+)\s*(?:$|&&|;|\n)")


class ShellDirectory:
    """Follows one shell. Where it cannot, `now` is a directory of which no other path is known to be a part: what is
    read there is a file of its own, until a `cd` to an absolute path."""

    def __init__(self, root: str) -> None:
        self._root = self.now = os.path.abspath(root)
        self._lost = 0

    def ran(self, command: str, *, restarted: bool = False) -> None:
        """A command is over, whatever came of it. Followed is a `cd` in front, to a directory that is there.
        `restarted`: there is a new shell now."""
        if restarted:
            self.now = self._root
        if restarted or not _MAY_MOVE.search(command):
            return
        first = _CD_FIRST.match(command)
        there = os.path.normpath(os.path.join(self.now, first[1])) if first is not None else ""
        if first is not None and os.path.isdir(there) and not _MAY_MOVE.search(command[first.end() :]):
            self.now = there
        else:
            self._lost += 1
            self.now = os.path.join(self._root, f"?{self._lost}")
