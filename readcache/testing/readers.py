"""What `cat`, `head`, `tail`, `nl -ba` and `sed -n` print, without a process, for files that only this process can see.

Which lines these are, the package's own parser and readers say; they are printed as GNU coreutils and sed do it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence as Seq

from readcache.model.claims import FileLines
from readcache.shell.arguments import CannotTell, Program, text_arg
from readcache.shell.expansion import arg_of
from readcache.shell.parse import parse_command
from readcache.shell.readers import READERS
from readcache.shell.streams import Claims, Stream
from readcache.shell.syntax import Node, Pipeline, Sequence, SimpleCommand
from readcache.shell.writers import WRITERS

_INPUT = "/dev/stdin"  # the key of what a program reads, wherever it comes from
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_PROGRAMS = ("cat", "head", "nl", "sed", "tail")


def read_files(command: str, cwd: str) -> str | None:
    """What a command prints that is made of these programs and `cd`, with pipes, `&&` and `;` between them, and whose
    files can be read. None: it is not."""
    tree = parse_command(command)
    items = tree.items if isinstance(tree, Sequence) else ((";", tree),)
    printed = ""
    try:
        for operator, node in items:
            if operator not in (";", "&&"):
                return None
            commands = [_words(one) for one in (node.commands if isinstance(node, Pipeline) else (node,))]
            if commands[0][0] == "cd":
                cwd = _change_directory(commands, cwd)
            else:
                printed += _run(commands, cwd)
    except CannotTell:
        return None
    return printed if items else None


def _words(node: Node | None) -> list[str]:
    """The words of a simple command that bash would leave as they are."""
    if not isinstance(node, SimpleCommand) or not node.words or node.redirects or node.assignments:
        raise CannotTell
    return [arg_of(word, {}, None).known for word in node.words]


def _change_directory(commands: list[list[str]], cwd: str) -> str:
    where = os.path.join(cwd, *commands[0][1:])
    if len(commands) > 1 or len(commands[0]) != 2 or commands[0][1].startswith("-") or not os.path.isdir(where):
        raise CannotTell
    return where


def _run(commands: list[list[str]], cwd: str) -> str:
    """What a pipeline prints."""
    lines: list[str] | None = None
    for name, *args in commands:
        lines = _run_program(name, args, lines, cwd)
    return "".join(lines or ())


def _run_program(name: str, args: list[str], piped: list[str] | None, cwd: str) -> list[str]:
    """The lines that it prints, from its files or from the lines of the pipe."""
    if args[:2] == ["-b", "a"]:
        args[:2] = ["-ba"]
    operands = [word for word in args if not word.startswith("-")]
    takes_one = name == "sed" or (name != "cat" and "-n" in args)  # the script, or the number of lines
    files = operands[takes_one:]
    args = [word for word in args if word not in files]
    if name not in _PROGRAMS or "-" in args or not (files or piped is not None):
        raise CannotTell
    if (name == "nl" and args != ["-ba"]) or (name in ("head", "tail") and len(files) > 1):
        raise CannotTell
    lines = _read(name, files, cwd) if files else piped or []
    if name == "sed":
        args = [word.replace("$", str(len(lines))) for word in args]  # the number of the last line
    stdin = Stream((FileLines((_INPUT,), ((1, len(lines)),)),) if lines else ())
    program = Program(name, tuple(map(text_arg, args)), stdin, cwd)
    if name == "sed" and WRITERS[name](program) is not None:
        raise CannotTell
    shown = _render(READERS[name](program), lines)
    closed = len(shown) - (name != "nl")  # but for nl, the last line printed ends as it does in the file
    return [line.removesuffix("\n") + "\n" for line in shown[:closed]] + shown[closed:]


def _read(name: str, paths: Seq[str], cwd: str) -> list[str]:
    """The lines of the files, as the program `name` reads them one after the other."""
    texts = []
    for path in paths:
        try:
            with open(os.path.join(cwd, path), "rb") as file:
                texts.append(file.read().decode("utf-8", "replace"))
        except OSError as error:
            raise CannotTell from error
    # cat joins a last line without its newline with the next file's first; the others keep files apart
    return [line for text in (["".join(texts)] if name == "cat" else texts) for line in _LINE.findall(text)]


def _render(claims: Claims, lines: Seq[str]) -> list[str]:
    """The lines that are claimed, numbered where they are claimed to be."""
    out: list[str] = []
    for claim in claims:
        if not isinstance(claim, FileLines) or claim.keys != (_INPUT,) or claim.ranges is None:
            raise CannotTell
        for start, end in claim.ranges:
            for number in range(start, (end or len(lines)) + 1):
                front = "" if claim.sep is None else f"{number + claim.shift:6}{claim.sep}"
                out.append(front + lines[number - 1])
    return out
