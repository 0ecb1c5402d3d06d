"""The files that a program may write if its text is part of the command: every file that the text names.

The text of `python3 - <<EOF`, `node -e TEXT` or `apply_patch <<EOF` is searched for paths and file names. The program's
use of them does not matter. Their directory is not known, so `src/a.py` becomes the pattern `*/src/a.py`. A program
without such a text (a script, a formatter, `make`) counts as writing nothing: the next read's bytes decide.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from readcache.core.model.claims import WHOLE_TREE
from readcache.core.shell.arguments import Program

MOST_CHARS = 200_000  # characters: a longer text is not searched
_MOST_NAMES = 2_000
_LONGEST = 300  # characters of a path

_INTERPRETER = re.compile(
    r"(?:.*/)?(?:python|pypy|node|deno|bun|tsx|ruby|perl|php|lua|osascript|pwsh)[\d.]*(?:\.exe)?"
    r"|patch|apply_?patch|ed|ex"
)
_EDITOR = re.compile("perl|ruby")
_IN_PLACE = re.compile(r"-[A-Za-z0-9]*i")
_TEXT_OPTION = re.compile(r"-[A-Za-z0-9]*[ceErp]|--eval|--print|--execute|-Command")
_WORD = re.compile(r"[\w@%+~\-/.$*?]+\(?")  # a name before `(` is a function, not a file
# Words with a dot or a slash, or with capitals, such as Makefile and LICENSE.
_NAME = re.compile(r".*[./].*\w|[A-Z]\w*file\w*|[A-Z]{4,}", re.DOTALL)
_PATCHED = re.compile(r"^(?:\+\+\+|---) [ab]/([^\t\n]+)", re.MULTILINE)
_ROOTS = re.compile(r"^(?:\.{0,2}/|~/)+|^[A-Za-z]:/")


def may_write(program: Program) -> tuple[str, ...]:
    """Return patterns of the files that the program's own text names. Return () if the command contains no such text.

    Return WHOLE_TREE as the only pattern if `perl -i` or `ruby -i` edits files that are not known.
    """
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
    """Return patterns of the files that `text` names.

    Return WHOLE_TREE as the only pattern if `text` has more than `MOST_CHARS` characters or more than `_MOST_NAMES`
    names.
    """
    if len(text) > MOST_CHARS:
        return (WHOLE_TREE,)
    found = dict.fromkeys(pattern for name in _names(text) if (pattern := below_anything(name)) is not None)
    return (WHOLE_TREE,) if len(found) > _MOST_NAMES else tuple(found)


def _names(text: str) -> Iterator[str]:
    found = (word for word in dict.fromkeys(_WORD.findall(text)) if not word.endswith("(") and len(word) <= _LONGEST)
    yield from filter(_NAME.fullmatch, (word.rstrip("./") for word in found))
    yield from (found[1] for found in _PATCHED.finditer(text))


def below_anything(path: str) -> str | None:
    """Return the pattern of the files with this path below any directory.

    Return None if it cannot be the name of a file.
    """
    path = _ROOTS.sub("", path.replace("\\", "/")).rstrip("/")
    if not re.search(r"\w", path.rpartition("/")[2]) or len(path) > _LONGEST or "\n" in path:
        return None
    return "*/" + posixpath.normpath(path)
