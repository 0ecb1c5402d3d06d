"""What programs print that only read: a table from a program's name to the claims about its output.

A reader may raise CannotTell; the walk takes that as Anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from readcache.model.claims import FileLines, Literal
from readcache.shell import streams
from readcache.shell.arguments import Arg, Call, CannotTell, integer, options, text_arg
from readcache.shell.streams import ANYTHING, Claims, Stream

Reader = Callable[[Call], Claims]


def _cat(call: Call) -> Claims:
    given = options(
        call.args,
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
    claims = call.input(given.operands)
    letters = "".join(sorted({letter for letter, _ in given.given} - {"u"}))
    name = f"cat -{letters}"
    if not letters:
        return claims
    if letters == "n":
        return streams.number(claims, "\t", name)
    if letters == "s":
        return streams.unknown(claims, gaps=True)
    return streams.vary(claims, name, line_by_line=not given.has("nbs"))


def _nl(call: Call) -> Claims:
    given = options(call.args, "b:v:w:s:n:i:", {"body-numbering": "b", "starting-line-number": "v"})
    claims = call.input(given.operands)
    name = " ".join(["nl", *(f"-{letter}{value}" for letter, value in given.given)])
    if given.value("b") != "a" or given.has("i") or given.value("n") == "ln":
        return streams.vary(claims, name)
    sep = given.value("s")
    if sep is None:
        sep = "\t"
    if not sep or sep[0].isdigit():
        return streams.vary(claims, name)
    return streams.number(claims, sep, name, integer(given.value("v") or "1"))


def _head(call: Call) -> Claims:
    given = options(
        _old_style(call.args),
        "n:c:qvz",
        {"lines": "n", "bytes": "c", "quiet": "q", "silent": "q", "verbose": "v"},
    )
    if given.has("z"):
        raise CannotTell
    count = given.value("n") or "10"

    def first_lines(claims: Claims) -> Claims:
        if given.has("c"):
            return streams.unknown(claims)
        if count.startswith("-"):
            return streams.drop_last(claims, integer(count[1:]))
        lines = integer(count)
        return streams.select(claims, ((1, lines),)) if lines else ()

    return _each(call, given.operands, given.has("q"), given.has("v"), first_lines)


def _tail(call: Call) -> Claims:
    given = options(
        _old_style(call.args),
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
            return streams.select(claims, ((max(1, integer(count[1:])), None),))
        return streams.tail(claims, integer(count.lstrip("-")))

    return _each(call, given.operands, given.has("q"), given.has("v"), last_lines)


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


def _each(call: Call, operands: tuple[Arg, ...], quiet: bool, verbose: bool, cut: Callable[[Claims], Claims]) -> Claims:
    """head and tail take each file by itself, and name it when there are several."""
    if not operands:
        return cut(call.stdin.claims)
    if any(operand.glob for operand in operands):
        return cut(call.input(operands)) if quiet else ANYTHING
    out: Claims = ()
    for operand in operands:
        if verbose or (len(operands) > 1 and not quiet):
            banner = f"==> {'standard input' if operand.known == '-' else operand.known} <==\n"
            out += (Literal("\n" + banner if out else banner),)
        out += cut(call.lines(operand))
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


def sed_script(call: Call) -> tuple[str | None, tuple[Arg, ...], bool, bool]:
    """sed's (script, files, -n, -s) from its arguments; the script is None when only running would tell."""
    given = options(call.args, "ne:Ersui::l:", _SED_LONG)
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


def _sed(call: Call) -> Claims:
    script, operands, quiet, separate = sed_script(call)
    if script is None:
        # `sed -n "$a,${b}p"`, nearly always: a range that is known at run time only
        return streams.unknown(call.input(operands), gaps=True) if quiet else ANYTHING
    from readcache.shell.sed import sed_output  # here, since a PATH shim's start is all its cost

    if not separate:
        return sed_output(call.input(operands), script, quiet=quiet)
    return tuple(claim for operand in operands for claim in sed_output(call.lines(operand), script, quiet=quiet))


def _awk(call: Call) -> Claims:
    given = options(call.args, "F:v:")
    if not given.operands:
        raise CannotTell
    variables = dict(value.split("=", 1) for letter, value in given.given if letter == "v" and "=" in value)
    program, *files = given.operands
    if any(re.match(r"[A-Za-z_]\w*=", file.text or "") for file in files):
        raise CannotTell
    from readcache.shell.awk import awk_output  # as sed's

    return awk_output(call.input(files), program.known, variables)


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


def _grep(call: Call) -> Claims:
    """grep, and rg on one file: lines of the file, with `-n` numbered (":", and "-" on lines of context)."""
    args = [arg for arg in call.args if not re.fullmatch(r"-\d+|--color=(never|auto)", arg.text or "")]
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
    claims = call.input(files)
    if given.has("n"):
        claims = streams.number(claims, ":", "grep -n")
    return streams.unknown(claims, gaps=True)


def _pager(call: Call) -> Claims:
    """less and more: into a pipe they are cat, but that some versions of more put a banner before each file."""
    if any((arg.text or "").startswith("+") for arg in call.args):
        raise CannotTell
    files = [arg for arg in call.args if arg.text is None or not arg.text.startswith("-") or arg.text == "-"]
    if call.name == "less" or not files:
        return call.input(files)
    return tuple(claim for file in files for claim in (*ANYTHING, *call.lines(file)))


_BAT_LONG = {"plain": "p", "number": "n", "style": "s", "line-range": "r", "language": "l", "color": "c", "paging": "P"}
_BAT_SPEC = "pns:r:l:c:P:A"


def _bat(call: Call) -> Claims:
    given = options(call.args, _BAT_SPEC, _BAT_LONG)
    claims = call.input(given.operands)
    if given.has("nA") or given.value("s") not in (None, "plain") or given.value("c") == "always":
        return streams.vary(claims, " ".join(arg.text or "" for arg in call.args if arg not in given.operands))
    wanted = given.value("r")
    if wanted is None:
        return claims
    found = re.fullmatch(r"(\d*):(\+?)(\d*)", wanted)
    if found is None or found.group(2):
        raise CannotTell
    first = int(found.group(1) or 1)
    return streams.select(claims, ((first, int(found.group(3)) if found.group(3) else None),))


# name -> (options, how many operands come before the files)
_FILTERS = {
    "tac": ("bs:r", 0),
    "rev": ("", 0),
    "sort": ("bdfgiMhnRrVcCmsuzk:t:S:T:", 0),
    "cut": ("b:c:d:f:nsz", 0),
    "tr": ("cCdst", 2),
    "column": ("tns:o:c:N:R:H:x", 0),
    "uniq": ("cdDiuzf:s:w:", 0),
    "jq": ("rcCMSsnejaf", 1),
    "yq": ("rcPCMes", 1),
    "fold": ("bsw:", 0),
    "fmt": ("cstuw:", 0),
    "expand": ("it:", 0),
    "unexpand": ("at:", 0),
    "hexdump": ("bcCdovn:s:e:", 0),
    "xxd": ("bepuirc:g:l:s:", 0),
    "od": ("bcdoxvA:t:N:j:w:", 0),
    "base64": ("diw:", 0),
    "strings": ("an:t:e:", 0),
    "iconv": ("f:t:c", 0),
}


def _filter(call: Call) -> Claims:
    """A program that prints something else made of its input: a rendering named by its own arguments."""
    spec, before = _FILTERS[call.name]
    given = options(call.args, spec)
    if call.name == "tr":
        before = len(given.operands)
    files = given.operands[before:]
    name = " ".join([call.name, *(arg.known for arg in call.args if arg not in files)])
    return streams.vary(call.input(files), name)


_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\"}


def _unescape(text: str) -> str:
    """Escapes of echo -e and printf. Raises CannotTell for the rare ones."""
    if any(letter not in _ESCAPES for letter in _ESCAPE.findall(text)):
        raise CannotTell
    return _ESCAPE.sub(lambda found: _ESCAPES[found.group(1)], text)


def _echo(call: Call) -> Claims:
    words = list(call.args)
    escapes = False
    while words and re.fullmatch(r"-[neE]+", words[0].text or ""):
        option = words.pop(0).known
        if "n" in option:
            raise CannotTell
        escapes = "e" in option
    text = " ".join(word.known for word in words)
    return (Literal((_unescape(text) if escapes else text) + "\n"),)


def _printf(call: Call) -> Claims:
    if not call.args or call.args[0].known.startswith("-"):
        raise CannotTell
    pattern, *values = (arg.known for arg in call.args)
    pieces = _unescape(pattern.replace('\\"', '"')).split("%s")
    if any("%" in piece for piece in pieces) or (values and len(values) != len(pieces) - 1):
        raise CannotTell
    text = pieces[0] + "".join(value + piece for value, piece in zip(values or [""] * len(pieces), pieces[1:]))  # noqa: B905
    if not text.endswith("\n"):
        raise CannotTell
    return (Literal(text),)


def _git(call: Call) -> Claims:
    """`git show REV:path`: a blob."""
    git = git_command(call)
    if git.name not in ("show", "cat-file") or git.cwd != call.cwd:
        raise CannotTell
    words = [arg.known for arg in git.args]
    blobs = [word for word in words if not word.startswith("-") and word != "blob"]
    if not blobs or any(not re.match(r"[^:]*:[^:/]", blob) for blob in blobs):
        raise CannotTell
    return tuple(FileLines((f"git:{blob}",)) for blob in blobs)


def git_command(call: Call) -> Call:
    """git's subcommand as a call of its own, in the directory of `-C`. Raises CannotTell when there is none."""
    args, cwd = list(call.args), call.cwd
    while args and args[0].known.startswith("-"):
        option = args.pop(0).known
        if option in ("-c", "-C") and args:
            value = args.pop(0)
            cwd = call.key(value) if option == "-C" else cwd
        elif option not in ("--no-pager", "-P"):
            raise CannotTell
    if not args:
        raise CannotTell
    return Call(args[0].known, tuple(args[1:]), call.stdin, cwd)


def _silent(_: Call) -> Claims:
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
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "grep": _grep,
    "egrep": _grep,
    "fgrep": _grep,
    "rg": _grep,
    "less": _pager,
    "more": _pager,
    "bat": _bat,
    "batcat": _bat,
    "echo": _echo,
    "printf": _printf,
    "git": _git,
    **{name: _filter for name in _FILTERS},
    **{name: _silent for name in _SILENT.split()},
}


def passes_through(call: Call) -> Stream | None:
    """The stdin of a `cat` that only hands it on, else None."""
    if call.name == "cat" and all(arg.text == "-" for arg in call.args):
        return call.stdin
    return None
