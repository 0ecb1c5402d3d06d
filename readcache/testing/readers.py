"""What `cat`, `head`, `tail`, `nl -ba` and `sed -n` print, without a process, for files that only this process can see:
as GNU coreutils and sed do it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence as Seq

from readcache.shell.arguments import CannotTell
from readcache.shell.expansion import arg_of
from readcache.shell.parse import parse_command
from readcache.shell.syntax import Node, Pipeline, Sequence, SimpleCommand

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FIRST = re.compile(r"(?:-n?(\d+))?")  # the options of `head`
_LAST = re.compile(r"(?:-n\+([1-9]\d*)|-n?(\d+))?")  # and of `tail`
_PRINTED = re.compile(r" *([1-9]\d*|\$)(?:,([1-9]\d*|\$))?p *")  # by `sed`


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
    at = 2 if name == "sed" or args[:2] == ["-b", "a"] or (name != "cat" and args[:1] == ["-n"]) else 1
    at = at if args[:1] and args[0].startswith("-") else 0
    flags, files = "".join(args[:at]), args[at:]
    if any(file.startswith("-") for file in files) or (not files and piped is None):
        raise CannotTell
    if name in ("head", "tail") and len(files) > 1:  # they print the files' names
        raise CannotTell
    lines = _read(name, files, cwd) if files else piped or []
    if (name, flags) in (("cat", "-n"), ("nl", "-ba")):
        lines = [f"{number:6}\t{line}" for number, line in enumerate(lines, 1)]
    elif name == "sed" and flags.startswith("-n"):
        spans = [_span(part, len(lines)) for part in "".join(args[1:2]).split(";")]
        lines = [line for at, line in enumerate(lines, 1) for low, high in spans if low <= at <= high]
    elif name == "head" and (count := _FIRST.fullmatch(flags)):
        lines = lines[: int(count[1] or 10)]
    elif name == "tail" and (count := _LAST.fullmatch(flags)):
        lines = lines[int(count[1]) - 1 :] if count[1] else lines[max(0, len(lines) - int(count[2] or 10)) :]
    elif (name, flags) != ("cat", ""):
        raise CannotTell
    closed = len(lines) - (name != "nl")  # but for nl, the last line printed ends as it does in the file
    return [line.removesuffix("\n") + "\n" for line in lines[:closed]] + lines[closed:]


def _span(command: str, last: int) -> tuple[int, int]:
    """The lines that a command of sed's prints."""
    found = _PRINTED.fullmatch(command)
    if found is None:
        raise CannotTell
    low, high = (last if number == "$" else int(number) for number in (found[1], found[2] or found[1]))
    return low, max(low, high)


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
