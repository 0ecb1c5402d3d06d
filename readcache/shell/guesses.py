"""What a program may write that is not understood: the files that its words and its text name, and scripts any file.

No program is read for what it does. What is certain to read only (`harmless`) writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from readcache.model.claims import WHOLE_TREE
from readcache.model.names import below_anything, names_in
from readcache.shell.arguments import Arg, Program, text_arg
from readcache.shell.effects import Effect, may_have_written
from readcache.shell.harmless import CHANGES, is_test_or_build, only_reads, words
from readcache.shell.streams import ANYTHING
from readcache.shell.targets import keys_of
from readcache.shell.trees import here

_INTERPRETER = re.compile(
    r"(?:.*/)?(?:python|pypy|node|nodejs|deno|bun|tsx|ts-node|ruby|perl|php|lua|luajit|Rscript|julia|tclsh|groovy|osascript|pwsh)"
    r"[\d.]*(?:\.exe)?"
)
_AWK_WRITES = re.compile(r">\s*[\"(]|system\s*\(|\|\s*\"")
# What in a filter (`perl -ne`) may write.
_FILTER_WRITES = re.compile(r"open|>|system|exec|`|writ|rename|unlink|File|IO|qx")
_AWK = ("awk", "gawk", "mawk", "nawk")
_SCRIPT = re.compile(r"\.(?:sh|bash|zsh|py|pyw|rb|pl|php|js|mjs|cjs|ts|mts|lua|R|jl|ps1|awk|exp)$")
_PLAIN = re.compile(r"[^\s'\"(){};|&<>`]+")
# Options of interpreters that take a value, and those whose value is a program.
_PROGRAM_OPTION = re.compile(r"-[A-Za-z]*[ceErp]|--eval|--print|--execute|-Command|-l?[ane]+[eE]")
_VALUE_OPTIONS = ("-W", "-X", "-I", "-r", "--require", "--import", "--loader", "-M")
# Programs that run in a directory of their own what their arguments say.
_ELSEWHERE = words("docker podman docker-compose nerdctl ssh wsl wsl.exe tmux screen su kubectl lxc vagrant chroot")


def may_write(program: Program) -> Effect:
    """What a program that is in no table may write."""
    name, args = program.name, tuple(arg.text for arg in program.args if arg.text is not None)
    if _INTERPRETER.fullmatch(name):
        return _interpreted(program)
    if name in _AWK:
        return may_have_written(*_awk(program))
    if only_reads(name.rpartition("/")[2], args):
        return Effect(ANYTHING)
    if "/" in name and _SCRIPT.search(name):
        return script_effect(program, text_arg(name))
    named = _named(program)
    return may_have_written(*(named if named or not CHANGES.search(" ".join(args)) else here(program)))


def script_effect(program: Program, file: Arg) -> Effect:
    """A script may write any file, unless it is one that tests or looks."""
    if is_test_or_build(file.text or file.shape):
        return Effect(ANYTHING)
    return Effect(ANYTHING, perhaps=_named(program), script=program.target(file) or WHOLE_TREE)


def names_given(program: Program) -> tuple[str, ...]:
    """What a program is given that changes where or how another one works: `env -C d sed -i … f`, `sudo -s …`."""
    if program.name in ("command", "exec", "builtin"):
        return ()
    given = (below_anything(arg.path or arg.shape) for arg in program.args if _PLAIN.fullmatch(arg.path or arg.shape))
    texts = (name for arg in program.args if not _PLAIN.fullmatch(arg.text or "") for name in names_in(arg.text or ""))
    return tuple(dict.fromkeys((*filter(None, given), *texts)))


def _named(program: Program) -> tuple[str, ...]:
    """Everything that the arguments and the text on stdin name."""
    out: list[str] = []
    for arg in program.args:
        out += _names_of(program, arg)
    if program.stdin.body is not None:
        out += names_in(program.stdin.body)
    return tuple(dict.fromkeys(out))


def _names_of(program: Program, arg: Arg) -> tuple[str, ...]:
    text = arg.path if arg.path is not None else arg.shape
    if not text or text == "-":
        return ()
    if text.startswith("-"):
        text = re.sub(r"^--?[\w-]+=|^-[A-Za-z](?=.*[./])", "", text)
        if text.startswith("-"):
            return ()
        arg = Arg(text, text)
    if _PLAIN.fullmatch(text) is None:
        return names_in(text)
    _, equals, _ = text.partition("=")
    if equals:
        return names_in(text)
    if program.name in _ELSEWHERE:
        return tuple(filter(None, (below_anything(text),)))
    return keys_of(program, [arg]) if re.search(r"\w", text) or text in (".", "..") else ()


def _interpreted(program: Program) -> Effect:
    """`python3 - <<EOF`, `node -e TEXT`: what the text names. A script may write any file."""
    args = list(program.args)
    while args and (text := args[0].text) is not None and text.startswith("-") and text != "-":
        args.pop(0)
        if text in ("-h", "--help", "-V", "--version", "-v", "--check"):
            return Effect(ANYTHING)
        if _PROGRAM_OPTION.fullmatch(text):
            is_filter = re.fullmatch(r"-\w*[np]\w*", text) and not any(map(_FILTER_WRITES.search, _texts_of(args)))
            return Effect(ANYTHING) if is_filter else may_have_written(*_named(program))
        if text in _VALUE_OPTIONS and args:
            args.pop(0)
    if args and args[0].text != "-":
        return script_effect(replace(program, args=tuple(args[1:])), args[0])
    if program.stdin.body is None:  # a program that comes down a pipe
        return may_have_written(WHOLE_TREE)
    return may_have_written(*_named(program))


def _texts_of(args: Iterable[Arg]) -> list[str]:
    return [arg.text or arg.shape for arg in args]


def _awk(program: Program) -> tuple[str, ...]:
    texts = _texts_of(program.args)
    if "inplace" in texts or any(map(_AWK_WRITES.search, texts)):
        return _named(program)
    return ()
