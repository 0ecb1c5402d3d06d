"""Files that programs write: a table from a program's name to a function that returns them and the output.

The table contains the programs with which agents edit files. An in-place editor may write any file if its files are not
known.

An interpreter may write every file that the program's text names, if that text is part of the command: `may_write`.
The text of `python3 - <<EOF`, `node -e TEXT` or `apply_patch <<EOF` is searched for paths and file names. The program's
use of them does not matter. Their directory is not known, so `src/a.py` becomes the pattern `*/src/a.py`. A program
without such a text (a script, a formatter, `make`) counts as writing nothing: the next read's bytes decide.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace

from readcache.core.model.claims import WHOLE_TREE, Authored
from readcache.core.shell.arguments import Arg, CannotTell, Program
from readcache.core.shell.readers import READERS, sed_script
from readcache.core.shell.streams import ANYTHING, Claims, Stream


@dataclass(frozen=True, slots=True)
class Effect:
    """The claims about a program's output, and the keys of the files that it writes.

    `authored`: the texts that it puts into files. `possible_writes`: the keys of files that it may write.
    """

    claims: Claims = ()
    writes: tuple[str, ...] = ()
    authored: tuple[Authored, ...] = ()
    possible_writes: tuple[str, ...] = ()


Writer = Callable[[Program], "Effect | None"]  # None: this program writes nothing, so the table of `readers` decides


def _operands(program: Program) -> list[Arg]:
    """Return every argument that does not look like an option."""
    return [arg for arg in program.args if not (arg.text or "").startswith("-")]


def _keys(program: Program, args: Iterable[Arg]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for key in map(program.key, args) if key is not None))


def _has_flag(program: Program, pattern: str) -> bool:
    return any(re.match(pattern, arg.text or "") for arg in program.args)


def _sed(program: Program) -> Effect | None:
    if not _has_flag(program, r"-[nErsuz]*i|--in-place"):
        return None
    try:
        _, files, _ = sed_script(program)
    except CannotTell:  # it is not known which of these are files, but files come last
        operands = _operands(program)
        return Effect(ANYTHING, possible_writes=_keys(program, operands) + _unknown(program, operands[-1:]))
    return Effect((), _keys(program, files), possible_writes=_unknown(program, files))


def _unknown(program: Program, files: Iterable[Arg]) -> tuple[str, ...]:
    """Return (WHOLE_TREE,) if one of these files is not known, otherwise ()."""
    return (WHOLE_TREE,) if any(program.key(file) is None for file in files) else ()


def _tee(program: Program) -> Effect:
    keys = _keys(program, _operands(program))
    appends = _has_flag(program, r"-\w*a|--append")
    return Effect(program.stdin.claims, keys, authored_by(program.stdin, keys, append=appends))


def authored_by(stdin: Stream, keys: Iterable[str], *, append: bool) -> tuple[Authored, ...]:
    """Return the part of `stdin` that is the command's own text, as the contents of the files `keys`.

    The number of the first line is 0 (unknown) if the text is appended, otherwise 1.
    """
    if stdin.body is None:
        return ()
    return tuple(Authored(key, stdin.body, 0 if append else 1) for key in keys)


def _copy(program: Program) -> Effect:
    """Return the effect of cp and mv. mv also writes its sources.

    They write the target, or the files below it if it is clearly a directory. Raise CannotTell if there are fewer than
    two files or if an option names the target.
    """
    files = _operands(program)
    if len(files) < 2 or _has_flag(program, r"-[A-Za-z]*t|--target"):
        raise CannotTell
    into = files.pop()
    sources, written = _keys(program, files), _keys(program, [into])
    if len(files) > 1 or re.search(r"(?:^|/)\.{0,2}$", into.path or ""):
        written = tuple(posixpath.join(target, posixpath.basename(key)) for target in written for key in sources)
    return Effect(_said(program), (*written, *(sources if program.name == "mv" else ())))


def _remove(program: Program) -> Effect:
    return Effect(_said(program), _keys(program, _operands(program)))


def _git(program: Program) -> Effect | None:
    """Return the effect of `git mv` and `git rm`.

    The next read shows everything else that git writes (a checkout, a stash).
    """
    verb = program.args[0].text if program.args else None
    return WRITERS[verb](replace(program, name=verb, args=program.args[1:])) if verb in ("mv", "rm") else None


def _said(program: Program) -> Claims:
    return ANYTHING if _has_flag(program, r"-[A-Za-z]*v|--verbose") else ()


def started_by(program: Program, others: Container[str]) -> Program | None:
    """Return the editor, or one of the `others`, that a program in neither table starts: `sudo`, `xargs`, `find -exec`.

    Return None if there is none. The names that the outer program adds are not known.
    """
    if program.name in WRITERS or program.name in READERS:
        return None
    for at, arg in enumerate(program.args):
        if arg.text in EDITORS or (arg.text and arg.text in others):
            args = [UNKNOWN if "{}" in (word.text or "") else word for word in program.args[at + 1 :]]
            args += [UNKNOWN] * (program.name in _ADD_NAMES)
            return replace(program, name=arg.text or "", args=tuple(args))
    return None


def effect_of(program: Program) -> Effect:
    """Return the effect of any program, from the tables."""
    writer, reader = WRITERS.get(program.name), READERS.get(program.name)
    try:
        written = writer(program) if writer is not None else None
    except CannotTell:  # with an unknown option, it may write any of its files
        return Effect(ANYTHING, possible_writes=_keys(program, _operands(program)))
    if written is not None:
        return written
    try:
        return Effect(reader(program)) if reader is not None else Effect(ANYTHING, possible_writes=may_write(program))
    except CannotTell:
        return Effect(ANYTHING)


EDITORS = ("sed", "gsed", "perl", "ruby")
UNKNOWN = Arg(None, None)
_ADD_NAMES = ("xargs", "parallel", "fd", "fdfind")

WRITERS: dict[str, Writer] = {
    "sed": _sed,
    "gsed": _sed,
    "tee": _tee,
    "cp": _copy,
    "mv": _copy,
    "rm": _remove,
    "git": _git,
}


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
