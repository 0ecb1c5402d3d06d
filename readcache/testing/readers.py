"""What `cat`, `head`, `tail`, `nl -ba` and `sed -n` print, without a process, for files that only this process can see.

Which lines these are, the package's own parser and readers say; they are printed as GNU coreutils and sed do it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence as Seq

from readcache.model.claims import FileLines
from readcache.shell.arguments import CannotTell, Program, text_arg
from readcache.shell.parse import parse_command
from readcache.shell.readers import READERS
from readcache.shell.streams import Claims, Stream
from readcache.shell.syntax import Node, Pipeline, Sequence, SimpleCommand
from readcache.shell.walk import arg_of
from readcache.shell.writers import WRITERS

_INPUT = "/dev/stdin"  # the key of what a program reads, wherever it comes from
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
# What a program says of a file that it cannot open: {0} its name, {1} its name as bash would quote it.
_COMPLAINTS = {
    "cat": "{1}",
    "nl": "{1}",
    "head": "cannot open '{0}' for reading",
    "tail": "cannot open '{0}' for reading",
    "sed": "can't read {0}",
}


def read_files(command: str, cwd: str) -> tuple[str, int] | None:
    """(output, exit status) of a command that is made of these programs and `cd`, with pipes, `&&` and `;` between
    them. None: it is not. What a pipe's programs say about files that they cannot open comes before its output.
    """
    tree = parse_command(command)
    items = tree.items if isinstance(tree, Sequence) else ((";", tree),)
    printed, status = "", 0
    try:
        for operator, node in items:
            if operator not in (";", "&&"):
                return None
            if operator == ";" or status == 0:
                commands = [_words(one) for one in (node.commands if isinstance(node, Pipeline) else (node,))]
                if commands[0][0] == "cd":
                    cwd, text, status = _change_directory(commands, cwd), "", 0
                else:
                    text, status = _run(commands, cwd)
                printed += text
    except CannotTell:
        return None
    return (printed, status) if items else None


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


def _run(commands: list[list[str]], cwd: str) -> tuple[str, int]:
    """(output, exit status) of a pipeline."""
    errors, lines, status = "", None, 0
    for name, *args in commands:
        complaints, lines = _run_program(name, args, lines, cwd)
        status = (2 if name == "sed" else 1) if complaints else 0
        errors += complaints
    return errors + "".join(lines or ()), status


def _run_program(name: str, args: list[str], piped: list[str] | None, cwd: str) -> tuple[str, list[str]]:
    """(what it complains about, the lines that it prints), from its files or from the lines of the pipe."""
    if args[:2] == ["-b", "a"]:
        args[:2] = ["-ba"]
    operands = [word for word in args if not word.startswith("-")]
    takes_one = name == "sed" or (name != "cat" and "-n" in args)  # the script, or the number of lines
    files = operands[takes_one:]
    args = [word for word in args if word not in files]
    if name not in _COMPLAINTS or "-" in args or not (files or piped is not None):
        raise CannotTell
    if (name == "nl" and args != ["-ba"]) or (name in ("head", "tail") and len(files) > 1):
        raise CannotTell
    errors, lines = _read(name, files, cwd) if files else ("", piped or [])
    if name == "sed":
        args = [word.replace("$", str(len(lines))) for word in args]  # the number of the last line
    stdin = Stream((FileLines((_INPUT,), ((1, len(lines)),)),) if lines else ())
    program = Program(name, tuple(map(text_arg, args)), stdin, cwd)
    if name == "sed" and WRITERS[name](program) is not None:
        raise CannotTell
    shown = _render(READERS[name](program), lines)
    closed = len(shown) - (name != "nl")  # but for nl, the last line printed ends as it does in the file
    return errors, [line.removesuffix("\n") + "\n" for line in shown[:closed]] + shown[closed:]


def _read(name: str, paths: Seq[str], cwd: str) -> tuple[str, list[str]]:
    """(what the program `name` says of files that it cannot open, the lines of the others)."""
    errors, texts = "", []
    for path in paths:
        try:
            with open(os.path.join(cwd, path), "rb") as file:
                texts.append(file.read().decode("utf-8", "replace"))
        except IsADirectoryError as error:
            raise CannotTell from error
        except OSError as error:
            errors += f"{name}: {_COMPLAINTS[name].format(path, shlex.quote(path))}: {error.strerror}\n"
    # cat joins a last line without its newline with the next file's first; the others keep files apart
    return errors, [line for text in (["".join(texts)] if name == "cat" else texts) for line in _LINE.findall(text)]


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
