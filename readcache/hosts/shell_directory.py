"""Follows the working directory of a persistent shell, as far as its commands tell."""

from __future__ import annotations

import os
import re

_MAY_MOVE = re.compile(r"\b(?:cd|pushd|popd|source|eval|exec|exit)\b|(?:^|[;&|({]|\s)\.\s")
_CD_FIRST = re.compile(r"\s*cd\s+(?:--\s+)?([\w./+-]+)\s*(?:$|&&|;|\n)")


class ShellDirectory:
    """Follows one shell. When it loses track, `now` becomes a directory that no other path is in, so that files read
    there match no others, until a `cd` to an absolute path."""

    def __init__(self, root: str) -> None:
        self._root = self.now = os.path.abspath(root)
        self._lost = 0

    def follow(self, command: str, *, restarted: bool = False) -> None:
        """A command is over, with any outcome. A leading `cd` to an existing directory is followed. `restarted`: there
        is a new shell now."""
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
