"""Programs that run another program: `timeout 5 cat f` is `cat f`."""

from __future__ import annotations

import posixpath
import re

from readcache.shell.arguments import Arg, Call

# name -> its options that take a value, and how many operands of its own come before the program
_WRAPPERS = {
    "command": ("", 0),
    "builtin": ("", 0),
    "exec": ("a", 0),
    "env": ("uCS", 0),
    "sudo": ("ugpCTh", 0),
    "time": ("fo", 0),
    "nice": ("n", 0),
    "ionice": ("cn", 0),
    "nohup": ("", 0),
    "timeout": ("ks", 1),
    "gtimeout": ("ks", 1),
    "stdbuf": ("ioe", 0),
    "unbuffer": ("", 0),
    "npx": ("", 0),
}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# Options that make the wrapper print by itself, or change where the program works.
_ELSEWHERE = {"command": ("-v", "-V"), "env": ("-C", "-S", "--chdir"), "sudo": ("-i", "-s", "-D")}


def unwrap(call: Call) -> Call | None:
    """The program that really runs, by its plain name; None when there is none or it cannot be told."""
    while call.name in _WRAPPERS:
        with_value, own = _WRAPPERS[call.name]
        rest = list(call.args)
        while rest and (text := rest[0].text) is not None and (text.startswith("-") or _ASSIGNMENT.match(text)):
            if text in _ELSEWHERE.get(call.name, ()):
                return None
            rest.pop(0)
            if text == "--":
                break
            if re.fullmatch(r"-[A-Za-z]", text) and text[1] in with_value and rest:
                rest.pop(0)
        rest = rest[own:]
        if not rest or rest[0].text is None:
            return None
        call = Call(program_name(rest[0].text), tuple(rest[1:]), call.stdin, call.cwd)
    return _module(call)


def program_name(text: str) -> str:
    """`cat` for `/bin/cat`; other paths are programs of the user's, and stay."""
    directory, _, name = text.rpartition("/")
    return name if directory in ("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin") else text


def _module(call: Call) -> Call:
    """`python -m black f` and `uv run black f` are `black f`."""
    args = call.args
    if is_python(call.name) and len(args) > 1 and args[0].text == "-m":
        return _named(call, args[1], args[2:])
    if call.name in ("uv", "poetry", "pipenv") and len(args) > 1 and args[0].text == "run":
        return _named(call, args[1], args[2:])
    return call


def _named(call: Call, program: Arg, args: tuple[Arg, ...]) -> Call:
    return Call(posixpath.basename(program.text or ""), args, call.stdin, call.cwd)


def is_python(name: str) -> bool:
    """Is it a Python interpreter?"""
    return re.fullmatch(r"(?:.*/)?python[\d.]*", name) is not None
