"""Programs that run another program: `timeout 5 cat f` is `cat f`."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace

from readcache.shell.arguments import Program

# name -> the letters of its options that take a value; behind `timeout` comes one operand of its own, the time
_WRAPPERS = {"exec": "a", "env": "uCS", "sudo": "ugpCTh", "time": "fo", "nice": "n", "ionice": "cn", "stdbuf": "ioe"}
_WRAPPERS |= {"timeout": "ks", "gtimeout": "ks"}
_WRAPPERS |= dict.fromkeys(("command", "builtin", "nohup", "unbuffer", "npx"), "")
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# Options that make the wrapper print by itself, or change where the program works.
_ELSEWHERE = {"command": ("-v", "-V"), "env": ("-C", "-S", "--chdir"), "sudo": ("-i", "-s", "-D")}


def unwrap(program: Program) -> Program | None:
    """The program that really runs, by its plain name; None when there is none or it cannot be told."""
    while program.name in _WRAPPERS:
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
    return _module(program)


def program_name(text: str) -> str:
    """`cat` for `/bin/cat`; other paths are programs of the user's, and stay."""
    directory, _, name = text.rpartition("/")
    return name if directory in ("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin") else text


def _module(program: Program) -> Program:
    """`python -m black f` and `uv run black f` are `black f`."""
    word = "-m" if _PYTHON.fullmatch(program.name) else "run" if program.name in ("uv", "poetry", "pipenv") else None
    args = program.args
    if word is None or len(args) < 2 or args[0].text != word:
        return program
    return replace(program, name=posixpath.basename(args[1].text or ""), args=args[2:])
