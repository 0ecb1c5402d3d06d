"""Claims about the output of programs that only read: a table from a program's name to a function that returns them.

A function may raise CannotTell. The walk then assumes Anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from readcache.core.model.claims import FileLines, Literal
from readcache.core.shell import streams
from readcache.core.shell.arguments import Arg, CannotTell, Program, integer, options, text_arg
from readcache.core.shell.streams import ANYTHING, Claims

Reader = Callable[[Program], Claims]


def _cat(program: Program) -> Claims:
    given = options(program.args, "nu", {"number": "n"})
    claims = program.input(given.operands)
    return streams.number_lines(claims, "\t") if given.has("n") else claims


def _nl(program: Program) -> Claims:
    given = options(program.args, "b:v:w:s:n:", {"body-numbering": "b", "starting-line-number": "v"})
    sep = given.value("s") or "\t"
    if given.value("b") != "a" or given.value("n") == "ln" or sep[0].isdigit():
        raise CannotTell
    return streams.number_lines(program.input(given.operands), sep, integer(given.value("v") or "1"))


def _head(program: Program) -> Claims:
    def first_lines(claims: Claims, count: str) -> Claims:
        return streams.select_lines(claims, 1, integer(count)) if integer(count) else ()

    return _each(program, first_lines)


def _tail(program: Program) -> Claims:
    def last_lines(claims: Claims, count: str) -> Claims:
        if count.startswith("+"):
            return streams.select_lines(claims, max(1, integer(count[1:])), None)
        return streams.select_tail(claims, integer(count.lstrip("-")))

    return _each(program, last_lines)


def _each(program: Program, narrow: Callable[[Claims, str], Claims]) -> Claims:
    """Return the claims of head and tail: `narrow` applied to the input and the count, which is "10" if none is given.

    With several files, they print headings, so that only some of the printed lines are lines of files.
    """
    args = program.args
    if args and re.fullmatch(r"[-+]\d+", args[0].text or ""):  # `head -20`, `tail +20`
        args = (text_arg(f"-n{args[0].known.lstrip('-')}"), *args[1:])
    given = options(args, "n:c:qv", {"lines": "n", "bytes": "c", "quiet": "q", "silent": "q", "verbose": "v"})
    claims = program.input(given.operands)
    if len(given.operands) > 1 or given.has("cv"):
        return streams.unknown(claims)
    return narrow(claims, given.value("n") or "10")


_SED_LONG = {"quiet": "n", "silent": "n", "expression": "e", "regexp-extended": "E", "separate": "s", "in-place": "i"}


def sed_script(program: Program) -> tuple[str | None, tuple[Arg, ...], bool]:
    """Return sed's (script, files, -n) from its arguments.

    The script is None if only running the command would show it. Raise CannotTell if there is no script or an option is
    not known.
    """
    given = options(program.args, "ne:Ersui::l:", _SED_LONG)
    operands = given.operands
    if given.has("i") and operands and operands[0].text == "":
        operands = operands[1:]  # BSD's `-i ''`
    parts = [value for letter, value in given.given if letter == "e"]
    script: str | None = "\n".join(parts)
    if not parts:
        if not operands:
            raise CannotTell
        script, operands = operands[0].text, operands[1:]
    return script, operands, given.has("n")


def _sed(program: Program) -> Claims:
    script, operands, quiet = sed_script(program)
    claims = program.input(operands)
    if script is None:
        # nearly always `sed -n "$a,${b}p"`: a range that is known only at run time
        return streams.unknown(claims, gaps=True) if quiet else ANYTHING
    from readcache.core.shell.sed import sed_output  # imported here, because starting is the only cost of a PATH shim

    return sed_output(claims, script, quiet=quiet)


def _grep(program: Program) -> Claims:
    """Return the claims of grep, and of rg on one file: some lines of the file.

    With `-n`, a number and ":" come before each line, on lines of context a number and "-".
    """
    args = [arg for arg in program.args if not re.fullmatch(r"-\d+|--color=(never|auto)", arg.text or "")]
    given = options(args, "nivwxEFPGhase:f:A:B:C:m:qyS")
    files = list(given.operands)
    if not given.has("ef"):
        if not files:
            raise CannotTell
        files.pop(0)
    if given.has("q"):
        return ()
    if (len(files) > 1 and (not given.has("h") or given.has("n"))) or any(file.text == "." for file in files):
        raise CannotTell
    claims = program.input(files)
    if given.has("n"):
        claims = streams.number_lines(claims, ":")
    return streams.unknown(claims, gaps=True)


def _echo(program: Program) -> Claims:
    words = [word.known for word in program.args]
    if words and re.fullmatch("-[neE]+", words[0]):
        raise CannotTell
    return (Literal(" ".join(words) + "\n"),)


def _git(program: Program) -> Claims:
    """Return the claims of `git show REV:path`, which prints a blob. `git add` and `git restore` print nothing."""
    verb, *words = [arg.known for arg in program.args]
    if verb in ("add", "restore"):
        return ()
    if verb != "show":
        raise CannotTell
    blobs = [word for word in words if not word.startswith("-")]
    if not blobs or any(not re.match(r"[^:]*:[^:/]", blob) for blob in blobs):
        raise CannotTell
    return tuple(FileLines((f"git:{blob}",)) for blob in blobs)


_SILENT = (
    ": true false test [ export declare local readonly typeset unset set shopt umask ulimit alias trap sleep mkdir "
    "rmdir chmod chown touch ln cd exit return break continue shift wait read"
)

READERS: dict[str, Reader] = {"cat": _cat, "nl": _nl, "head": _head, "tail": _tail, "git": _git}
READERS["echo"] = _echo
READERS |= dict.fromkeys(("sed", "gsed"), _sed)
READERS |= dict.fromkeys(("grep", "egrep", "fgrep", "rg"), _grep)
READERS |= dict.fromkeys(_SILENT.split(), lambda _: ())


def hands_on(program: Program) -> bool:
    """Return True for a `cat` that prints its stdin."""
    return program.name == "cat" and all(arg.text == "-" for arg in program.args)
