"""The files that a text names: a program in a heredoc, the argument of `-c`, a command that nobody understands.

No program is read for what it does. A path or a file name that stands in it, alone or in quotes, is a file that it may
write, below whatever directory.
"""

from __future__ import annotations

import posixpath
import re

from readcache.model.claims import WHOLE_TREE

MOST_CHARS = 200_000  # of a text that is looked through
_MOST_NAMES = 2_000
_LONGEST = 300  # characters of a path

_QUOTED = re.compile(r"'([^'\n]{1,300})'|\"([^\"\n]{1,300})\"")
_WORD = re.compile(r"[\w@%+~\-/.$*?]+\(?")  # a call is no name
# With a dot or a slash in it, or with capitals, as Makefile and LICENSE.
_NAME = re.compile(r".*[./].*\w|[A-Z]\w*file\w*|[A-Z]{4,}", re.DOTALL)
_PATCHED = re.compile(r"^(?:\+\+\+|---) [ab]/([^\t\n]+)", re.MULTILINE)
_ROOTS = re.compile(r"^(?:\.{0,2}/|~/)+|^[A-Za-z]:/")


def names_in(text: str) -> tuple[str, ...]:
    """Patterns of the files that `text` names, as `*/src/a.py` for `src/a.py`; WHOLE_TREE where they are too many."""
    if len(text) > MOST_CHARS:
        return (WHOLE_TREE,)
    found: dict[str, None] = {}
    for match in _QUOTED.finditer(text):
        quoted = match[1] or match[2]
        if re.fullmatch(r"\.\w{1,5}", quoted):
            found[f"*{quoted}"] = None  # '.py', as in `endswith('.py')`: any file of that kind
        elif not re.fullmatch(r"\\.", quoted):
            _add(found, quoted)
    for word in dict.fromkeys(_WORD.findall(text)):
        if not word.endswith("(") and len(word) <= _LONGEST and _NAME.fullmatch(word := word.rstrip("./")):
            _add(found, word)
    for match in _PATCHED.finditer(text):
        _add(found, match[1])
    return (WHOLE_TREE,) if len(found) > _MOST_NAMES else tuple(found)


def _add(found: dict[str, None], name: str) -> None:
    pattern = below_anything(name)
    if pattern is not None:
        found[pattern] = None


def below_anything(path: str) -> str | None:
    """The pattern of the files of this path below any directory; None for what names no file."""
    path = _ROOTS.sub("", path.replace("\\", "/")).rstrip("/")
    name = path.rpartition("/")[2]
    if not re.search(r"\w", name) or len(path) > _LONGEST or "\n" in path:
        return None
    return "*/" + posixpath.normpath(path)
