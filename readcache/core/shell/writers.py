"""Files that programs write: a table from a program's name to a function that returns them and the output.

The table contains the programs with which agents edit files. `guesses` finds the files that an interpreter may write.
An in-place editor may write any file if its files are not known. Any other program counts as writing nothing: the next
read's bytes decide.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace

from readcache.core.model.claims import WHOLE_TREE, Authored
from readcache.core.shell.arguments import Arg, CannotTell, Program
from readcache.core.shell.guesses import may_write
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
