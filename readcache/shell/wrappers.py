"""Programs that run another program: `timeout 5 cat f` is `cat f`."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace

from readcache.shell.arguments import Arg, Program, text_arg

# name -> the letters of its options that take a value; behind `timeout` comes one operand of its own, the time
_WRAPPERS = {"exec": "a", "env": "uCS", "sudo": "ugpCTh", "time": "fo", "nice": "n", "ionice": "cn", "stdbuf": "ioe"}
_WRAPPERS |= {"timeout": "ks", "gtimeout": "ks"}
_WRAPPERS |= dict.fromkeys(
    ("command", "builtin", "nohup", "unbuffer", "npx", "bunx", "pnpx", "uvx", "setsid", "doas", "coproc"), ""
)
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
_RUN = {"pnpm": ("exec", "dlx"), "yarn": ("exec", "dlx"), "npm": ("exec", "x"), "bundle": ("exec",), "bun": ("x",)}
_RUN |= dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "pipx"), ("run",))
_MOST_WRAPPERS = 20  # one in another; the recordings have one
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# Options that make the wrapper print by itself, or change where the program works.
_ELSEWHERE = {"command": ("-v", "-V"), "env": ("-C", "-S", "--chdir"), "sudo": ("-i", "-s", "-D")}


def unwrap(program: Program) -> Program | None:
    """The program that really runs, by its plain name; None when there is none or it cannot be told."""
    for _ in range(_MOST_WRAPPERS):
        if program.name not in _WRAPPERS:
            return _module(program)
        rest = list(program.args)
        while rest and (text := rest[0].text) is not None and (text.startswith("-") or _ASSIGNMENT.match(text)):
            if text in _ELSEWHERE.get(program.name, ()):
                return None
            rest.pop(0)
            if text == "--":
                break
            if re.fullmatch(r"-[A-Za-z]", text) and text[1] in _WRAPPERS[program.name] and rest:
                rest.pop(0)
        if program.name in ("timeout", "gtimeout"):
            rest = rest[1:]
        if not rest or rest[0].text is None:
            return None
        program = replace(program, name=program_name(rest[0].text), args=tuple(rest[1:]))
    return None


def script_of(program: Program) -> tuple[Arg | None, Arg | None]:
    """A shell's script: (the text behind `-c`, the file); neither when it comes on stdin."""
    args = list(program.args)
    while args and re.fullmatch(r"[-+][a-zA-Z]+|--\w+", args[0].text or ""):
        option = args.pop(0).known
        if option == "-n":  # it only looks for errors
            return text_arg(""), None
        if option.endswith("c") and args:
            return args[0], None
    return None, args[0] if args and args[0].text != "-" else None


def program_name(text: str) -> str:
    """`cat` for `/bin/cat`; other paths are programs of the user's, and stay."""
    directory, _, name = text.rpartition("/")
    return name if directory in ("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin") else text


def _module(program: Program) -> Program:
    """`python -m black f`, `uv run black f` and `pnpm exec black f` are `black f`."""
    words = ("-m",) if _PYTHON.fullmatch(program.name) else _RUN.get(program.name, ())
    args = program.args
    if len(args) < 2 or args[0].text not in words:
        return program
    return replace(program, name=posixpath.basename(args[1].text or ""), args=args[2:])
