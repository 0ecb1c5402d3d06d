"""The files that a program may write if its own text stands in the command: every file that the text names.

The text of `python3 - <<EOF`, `node -e TEXT` or `apply_patch <<EOF` is searched for paths and file names, whatever the
program does with them. Their directory is not known, so `src/a.py` becomes the pattern `*/src/a.py`. A program without
such a text (a script, a formatter, `make`) counts as writing nothing: the next read's bytes decide.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from readcache.core.model.claims import WHOLE_TREE
from readcache.core.shell.arguments import Program

MOST_CHARS = 200_000  # of a text that is searched
_MOST_NAMES = 2_000
_LONGEST = 300  # characters of a path

_INTERPRETER = re.compile(
    r"(?:.*/)?(?:python|pypy|node|deno|bun|tsx|ruby|perl|php|lua|osascript|pwsh)[\d.]*(?:\.exe)?"
    r"|patch|apply_?patch|ed|ex"
)
_EDITOR = re.compile("perl|ruby")
_IN_PLACE = re.compile(r"-[A-Za-z0-9]*i")
_TEXT_OPTION = re.compile(r"-[A-Za-z0-9]*[ceErp]|--eval|--print|--execute|-Command")
_WORD = re.compile(r"[\w@%+~\-/.$*?]+\(?")  # what is called is not a file
# With a dot or a slash in it, or with capitals, as Makefile and LICENSE.
_NAME = re.compile(r".*[./].*\w|[A-Z]\w*file\w*|[A-Z]{4,}", re.DOTALL)
_PATCHED = re.compile(r"^(?:\+\+\+|---) [ab]/([^\t\n]+)", re.MULTILINE)
_ROOTS = re.compile(r"^(?:\.{0,2}/|~/)+|^[A-Za-z]:/")


def may_write(program: Program) -> tuple[str, ...]:
    """Patterns of the files that the program's own text names; none if the command does not hold such a text."""
    files = [arg.path for arg in program.args]
    texts = [arg.text or "" for arg in program.args]
    if _INTERPRETER.fullmatch(program.name) is None:
        return ()
    if _EDITOR.fullmatch(program.name) and any(_IN_PLACE.match(text) for text in texts) and None in files:
        return (WHOLE_TREE,)
    if program.stdin.body is None and not any("\n" in text or _TEXT_OPTION.fullmatch(text) for text in texts):
        return ()
    return names_in("\n".join([*texts, program.stdin.body or ""]))


def names_in(text: str) -> tuple[str, ...]:
    """Patterns of the files that `text` names; WHOLE_TREE if there are too many."""
    if len(text) > MOST_CHARS:
        return (WHOLE_TREE,)
    found = dict.fromkeys(pattern for name in _names(text) if (pattern := below_anything(name)) is not None)
    return (WHOLE_TREE,) if len(found) > _MOST_NAMES else tuple(found)


def _names(text: str) -> Iterator[str]:
    found = (word for word in dict.fromkeys(_WORD.findall(text)) if not word.endswith("(") and len(word) <= _LONGEST)
    yield from filter(_NAME.fullmatch, (word.rstrip("./") for word in found))
    yield from (found[1] for found in _PATCHED.finditer(text))


def below_anything(path: str) -> str | None:
    """The pattern of the files of this path below any directory; None if it cannot be a file's name."""
    path = _ROOTS.sub("", path.replace("\\", "/")).rstrip("/")
    if not re.search(r"\w", path.rpartition("/")[2]) or len(path) > _LONGEST or "\n" in path:
        return None
    return "*/" + posixpath.normpath(path)
