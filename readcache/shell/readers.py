"""What programs print that only read: a table from a program's name to the claims about its output.

A reader may raise CannotTell; the walk takes that as Anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from readcache.model.claims import FileLines, Literal
from readcache.shell import streams
from readcache.shell.arguments import Arg, CannotTell, Program, integer, options, text_arg
from readcache.shell.streams import ANYTHING, Claims, Stream

Reader = Callable[[Program], Claims]


def _cat(program: Program) -> Claims:
    given = options(
        program.args,
        "nbAEsTtvue",
        {
            "number": "n",
            "number-nonblank": "b",
            "show-all": "A",
            "show-ends": "E",
            "squeeze-blank": "s",
            "show-tabs": "T",
            "show-nonprinting": "v",
        },
    )
    claims = program.input(given.operands)
    letters = "".join(sorted({letter for letter, _ in given.given} - {"u"}))
    name = f"cat -{letters}"
    if not letters:
        return claims
    if letters == "n":
        return streams.number(claims, "\t", name)
    if letters == "s":
        return streams.unknown(claims, gaps=True)
    return streams.vary(claims, name, line_by_line=not given.has("nbs"))


def _nl(program: Program) -> Claims:
    given = options(program.args, "b:v:w:s:n:i:", {"body-numbering": "b", "starting-line-number": "v"})
    claims = program.input(given.operands)
    name = " ".join(["nl", *(f"-{letter}{value}" for letter, value in given.given)])
    if given.value("b") != "a" or given.has("i") or given.value("n") == "ln":
        return streams.vary(claims, name)
    sep = given.value("s")
    if sep is None:
        sep = "\t"
    if not sep or sep[0].isdigit():
        return streams.vary(claims, name)
    return streams.number(claims, sep, name, integer(given.value("v") or "1"))


def _head(program: Program) -> Claims:
    given = options(
        _old_style(program.args),
        "n:c:qvz",
        {"lines": "n", "bytes": "c", "quiet": "q", "silent": "q", "verbose": "v"},
    )
    if given.has("z"):
        raise CannotTell
    count = given.value("n") or "10"

    def first_lines(claims: Claims) -> Claims:
        if given.has("c") or count.startswith("-"):
            return streams.unknown(claims)
        lines = integer(count)
        return streams.select_lines(claims, ((1, lines),)) if lines else ()

    return _each(program, given.operands, given.has("q"), given.has("v"), first_lines)


def _tail(program: Program) -> Claims:
    given = options(
        _old_style(program.args),
        "n:c:qvz",
        {"lines": "n", "bytes": "c", "quiet": "q", "silent": "q", "verbose": "v"},
    )
    if given.has("z"):
        raise CannotTell
    count = given.value("n") or "10"

    def last_lines(claims: Claims) -> Claims:
        if given.has("c"):
            return streams.unknown(claims)
        if count.startswith("+"):
            return streams.select_lines(claims, ((max(1, integer(count[1:])), None),))
        return streams.tail(claims, integer(count.lstrip("-")))

    return _each(program, given.operands, given.has("q"), given.has("v"), last_lines)


def _old_style(args: tuple[Arg, ...]) -> tuple[Arg, ...]:
    """`head -20` and `tail +20` as `-n 20` and `-n +20`."""
    if not args or args[0].text is None:
        return args
    text = args[0].text
    if re.fullmatch(r"-\d+", text):
        return (text_arg(f"-n{text[1:]}"), *args[1:])
    if re.fullmatch(r"\+\d+", text):
        return (text_arg(f"-n{text}"), *args[1:])
    return args


def _each(
    program: Program, operands: tuple[Arg, ...], quiet: bool, verbose: bool, cut: Callable[[Claims], Claims]
) -> Claims:
    """head and tail take each file by itself, and name it when there are several."""
    if not operands:
        return cut(program.stdin.claims)
    if any(operand.glob for operand in operands):
        return cut(program.input(operands)) if quiet else ANYTHING
    out: Claims = ()
    for operand in operands:
        if verbose or (len(operands) > 1 and not quiet):
            banner = f"==> {'standard input' if operand.known == '-' else operand.known} <==\n"
            out += (Literal("\n" + banner if out else banner),)
        out += cut(program.lines(operand))
    return out


_SED_LONG = {
    "quiet": "n",
    "silent": "n",
    "expression": "e",
    "regexp-extended": "E",
    "separate": "s",
    "unbuffered": "u",
    "posix": "p",
    "in-place": "i",
}


def sed_script(program: Program) -> tuple[str | None, tuple[Arg, ...], bool, bool]:
    """sed's (script, files, -n, -s) from its arguments; the script is None when only running would tell."""
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
    return script, operands, given.has("n"), given.has("s")


def _sed(program: Program) -> Claims:
    script, operands, quiet, separate = sed_script(program)
    if script is None:
        # `sed -n "$a,${b}p"`, nearly always: a range that is known at run time only
        return streams.unknown(program.input(operands), gaps=True) if quiet else ANYTHING
    from readcache.shell.sed import sed_output  # here, since a PATH shim's start is all its cost

    if not separate:
        return sed_output(program.input(operands), script, quiet=quiet)
    return tuple(claim for operand in operands for claim in sed_output(program.lines(operand), script, quiet=quiet))


_GREP_LONG = {
    "line-number": "n",
    "ignore-case": "i",
    "invert-match": "v",
    "word-regexp": "w",
    "line-regexp": "x",
    "extended-regexp": "E",
    "fixed-strings": "F",
    "perl-regexp": "P",
    "basic-regexp": "G",
    "no-filename": "h",
    "text": "a",
    "no-messages": "s",
    "regexp": "e",
    "after-context": "A",
    "before-context": "B",
    "context": "C",
    "max-count": "m",
    "quiet": "q",
    "silent": "q",
}


def _grep(program: Program) -> Claims:
    """grep, and rg on one file: lines of the file, with `-n` numbered (":", and "-" on lines of context)."""
    args = [arg for arg in program.args if not re.fullmatch(r"-\d+|--color=(never|auto)", arg.text or "")]
    given = options(args, "nivwxEFPGhase:f:A:B:C:m:qyS", _GREP_LONG)
    files = list(given.operands)
    if not given.has("ef"):
        if not files:
            raise CannotTell
        files.pop(0)
    if given.has("q"):
        return ()
    several = len(files) > 1 or any(file.glob for file in files)
    if (several and (not given.has("h") or given.has("n"))) or any(file.text == "." for file in files):
        raise CannotTell
    claims = program.input(files)
    if given.has("n"):
        claims = streams.number(claims, ":", "grep -n")
    return streams.unknown(claims, gaps=True)


_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\"}


def _unescape(text: str) -> str:
    """Escapes of echo -e and printf. Raises CannotTell for the rare ones."""
    if any(letter not in _ESCAPES for letter in _ESCAPE.findall(text)):
        raise CannotTell
    return _ESCAPE.sub(lambda found: _ESCAPES[found.group(1)], text)


def _echo(program: Program) -> Claims:
    words = list(program.args)
    escapes = False
    while words and re.fullmatch(r"-[neE]+", words[0].text or ""):
        option = words.pop(0).known
        if "n" in option:
            raise CannotTell
        escapes = "e" in option
    text = " ".join(word.known for word in words)
    return (Literal((_unescape(text) if escapes else text) + "\n"),)


def _printf(program: Program) -> Claims:
    if not program.args or program.args[0].known.startswith("-"):
        raise CannotTell
    pattern, *values = (arg.known for arg in program.args)
    pieces = _unescape(pattern.replace('\\"', '"')).split("%s")
    if any("%" in piece for piece in pieces) or (values and len(values) != len(pieces) - 1):
        raise CannotTell
    text = pieces[0] + "".join(value + piece for value, piece in zip(values or [""] * len(pieces), pieces[1:]))  # noqa: B905
    if not text.endswith("\n"):
        raise CannotTell
    return (Literal(text),)


def _git(program: Program) -> Claims:
    """`git show REV:path`: a blob."""
    git = git_command(program)
    if git.name not in ("show", "cat-file") or git.cwd != program.cwd:
        raise CannotTell
    words = [arg.known for arg in git.args]
    blobs = [word for word in words if not word.startswith("-") and word != "blob"]
    if not blobs or any(not re.match(r"[^:]*:[^:/]", blob) for blob in blobs):
        raise CannotTell
    return tuple(FileLines((f"git:{blob}",)) for blob in blobs)


def git_command(program: Program) -> Program:
    """git's subcommand as a program of its own, in the directory of `-C`. Raises CannotTell when there is none."""
    args, cwd = list(program.args), program.cwd
    while args and args[0].known.startswith("-"):
        option = args.pop(0).known
        if option in ("-c", "-C") and args:
            value = args.pop(0)
            cwd = program.key(value) if option == "-C" else cwd
        elif option not in ("--no-pager", "-P"):
            raise CannotTell
    if not args:
        raise CannotTell
    return Program(args[0].known, tuple(args[1:]), program.stdin, cwd)


def _silent(_: Program) -> Claims:
    return ()


_SILENT = (
    ": true false test [ export declare local readonly typeset unset set shopt umask ulimit alias trap sleep mkdir "
    "rmdir chmod chown touch cd exit return break continue shift wait read"
)

READERS: dict[str, Reader] = {
    "cat": _cat,
    "nl": _nl,
    "head": _head,
    "tail": _tail,
    "sed": _sed,
    "gsed": _sed,
    "grep": _grep,
    "egrep": _grep,
    "fgrep": _grep,
    "rg": _grep,
    "echo": _echo,
    "printf": _printf,
    "git": _git,
    **{name: _silent for name in _SILENT.split()},
}


def passes_through(program: Program) -> Stream | None:
    """The stdin of a `cat` that only hands it on, else None."""
    if program.name == "cat" and all(arg.text == "-" for arg in program.args):
        return program.stdin
    return None
