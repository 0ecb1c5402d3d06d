"""Follow the working directory of a persistent shell, if its commands show it."""

from __future__ import annotations

import os
import re

_MAY_MOVE = re.compile(r"\b(?:cd|pushd|popd|source|eval|exec|exit)\b|(?:^|[;&|({]|\s)\.\s")
_CD_FIRST = re.compile(r"\s*cd\s+(?:--\s+)?([\w./+-]+)\s*(?:$|&&|;|\n)")


class ShellDirectory:
    """The working directory of one shell.

    If it becomes unknown, `now` is a directory that contains no other path, so that files read there match no others.
    That ends with a `cd` to an absolute path.
    """

    def __init__(self, root: str) -> None:
        self._root = self.now = os.path.abspath(root)
        self._lost = 0

    def follow(self, command: str, *, restarted: bool = False) -> None:
        """Record that a command has ended, with any outcome. A leading `cd` to an existing directory is followed.
        `restarted`: the shell is a new one now."""
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
