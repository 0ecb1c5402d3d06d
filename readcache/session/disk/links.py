"""Where links lead.

Functions of `os` are used by module attribute, so that a mocked file system sees them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable


def real_paths(names: Iterable[str], directory: str) -> frozenset[str]:
    """The real paths of those names that are a link, or stand behind one. `directory`: where relative ones are. Names
    that are not file names are left out. Never raises."""
    home = os.path.expanduser("~")  # not of `~name`: looking up another user may take long
    given = {home + name[1:] if name.startswith("~/") else os.path.join(directory, name) for name in names}
    found = ((path, os.path.realpath(path)) for path in given if os.path.lexists(path))
    return frozenset(real for path, real in found if real != path)
