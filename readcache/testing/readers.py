"""What `cat`, `head`, `tail`, `nl` and `sed -n` print, worked out without a process, for files that only this process
can see. As GNU coreutils and sed do it; what is not known here is left to the script.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence

Printed = tuple[str, int]  # output, exit status
_OPERATORS = ("|", "&&", ";")
_QUOTED = re.compile(r"""'[^']*'|("[^"]*")""")
_EXPANDED = re.compile(r"[`$<>(){}*?~#\n]")  # what bash would expand, redirect or group outside single quotes
_RANGE = re.compile(r"([1-9]\d*|\$)(?:,(\d+|\$))?p")


class _Unknown(Exception):
    """A program, an option or a word that is not known here."""


def read_files(command: str, cwd: str) -> Printed | None:
    """What `command` prints when it is made of these programs and `cd`, with pipes, `&&` and `;` between them. None: it
    is not. What the programs of a pipe say about files that they cannot open comes before its output.
    """
    try:
        return _run_list(_words(command), cwd)
    except _Unknown:
        return None


def _words(command: str) -> list[str]:
    if _EXPANDED.search(_QUOTED.sub(r"\1", command)):
        raise _Unknown(command)
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError as error:  # a quote that is not closed
        raise _Unknown(command) from error
    if any(word not in _OPERATORS and not word.strip("|&;") for word in words):
        raise _Unknown(command)
    return words


def _run_list(words: Sequence[str], cwd: str) -> Printed:
    """Pipelines with `&&` and `;` between them."""
    printed, status, operator = "", 0, ";"
    for part, next_operator in _split(words, ("&&", ";")):
        if operator == ";" or status == 0:
            if part[:1] == ["cd"]:
                cwd, text, status = _cd(part[1:], cwd), "", 0
            else:
                text, status = _run_pipeline(part, cwd)
            printed += text
        operator = next_operator
    return printed, status


def _cd(args: Sequence[str], cwd: str) -> str:
    where = os.path.join(cwd, *args)
    if len(args) != 1 or args[0].startswith("-") or not os.path.isdir(where):
        raise _Unknown(args)
    return where


def _run_pipeline(words: Sequence[str], cwd: str) -> Printed:
    errors, text, status = "", None, 0
    for argv, _ in _split(words, ("|",)):
        if not argv or argv[0] not in _PROGRAMS:
            raise _Unknown(argv)
        source = _Input(argv[0], cwd, text)
        text = _PROGRAMS[argv[0]](argv[1:], source)
        errors, status = errors + source.errors, source.status
    return errors + (text or ""), status


def _split(words: Sequence[str], operators: tuple[str, ...]) -> Iterator[tuple[list[str], str]]:
    """The stretches between the operators, each with the operator behind it."""
    part: list[str] = []
    for word in words:
        if word in operators:
            yield part, word
            part = []
        else:
            part.append(word)
    yield part, ""


class _Input:
    """What a program reads: its files, or the pipe. Keeps what it says about files that cannot be read."""

    def __init__(self, program: str, cwd: str, piped: str | None) -> None:
        self._program = program
        self._cwd = cwd
        self._piped = piped
        self.errors = ""
        self.status = 0

    def texts(self, paths: Sequence[str]) -> list[str]:
        """One text for each file that can be read."""
        if any(path.startswith("-") for path in paths):
            raise _Unknown(paths)
        if not paths:
            if self._piped is None:
                raise _Unknown("reads the terminal")
            return [self._piped]
        return [text for path in paths if (text := self._text(path)) is not None]

    def _text(self, path: str) -> str | None:
        try:
            with open(os.path.join(self._cwd, path), "rb") as file:
                return file.read().decode("utf-8", "replace")
        except IsADirectoryError as error:
            raise _Unknown(path) from error
        except OSError as error:
            complaint = _COMPLAINTS[self._program].format(path, shlex.quote(path))
            self.errors += f"{self._program}: {complaint}: {error.strerror}\n"
            self.status = 2 if self._program == "sed" else 1
            return None


# What a program says of a file that it cannot open, before the reason.
_COMPLAINTS = {
    "cat": "{1}",
    "nl": "{1}",
    "head": "cannot open '{}' for reading",
    "tail": "cannot open '{}' for reading",
    "sed": "can't read {}",
}


def _cat(args: Sequence[str], source: _Input) -> str:
    numbered = args[:1] == ["-n"]
    text = "".join(source.texts(args[1:] if numbered else args))
    return _number(_lines(text)) if numbered else text


def _nl(args: Sequence[str], source: _Input) -> str:
    if args[:1] == ["-ba"]:
        paths = args[1:]
    elif args[:2] == ["-b", "a"]:
        paths = args[2:]
    else:  # numbers no blank lines
        raise _Unknown(args)
    return _number(_close([line for text in source.texts(paths) for line in _lines(text)]))


def _head(args: Sequence[str], source: _Input) -> str:
    count, paths = _count(args)
    return "".join(_lines(_only(source.texts(paths), paths))[: int(count)])


def _tail(args: Sequence[str], source: _Input) -> str:
    count, paths = _count(args)
    lines = _lines(_only(source.texts(paths), paths))
    if count.startswith("+"):
        return "".join(lines[max(0, int(count) - 1) :])
    return "".join(lines[max(0, len(lines) - int(count)) :])


def _sed(args: Sequence[str], source: _Input) -> str:
    if args[:1] != ["-n"] or len(args) < 2:
        raise _Unknown(args)
    lines = [line for text in source.texts(args[2:]) for line in _lines(text)]
    ranges = [_range(part.strip(), len(lines)) for part in args[1].split(";")]
    printed = [
        line
        for number, line in enumerate(lines, 1)
        for first, last in ranges
        if number == first or first < number <= last
    ]
    return "".join(_close(printed[:-1]) + printed[-1:])


def _range(part: str, count: int) -> tuple[int, int]:
    found = _RANGE.fullmatch(part)
    if found is None:
        raise _Unknown(part)
    first, last = (count if end == "$" else int(end) for end in (found[1], found[2] or found[1]))
    return first, last


_PROGRAMS: dict[str, Callable[[Sequence[str], _Input], str]] = {
    "cat": _cat,
    "nl": _nl,
    "head": _head,
    "tail": _tail,
    "sed": _sed,
}


def _count(args: Sequence[str]) -> tuple[str, Sequence[str]]:
    """(number of lines, paths) from `-n 5`, `-n5`, `-5` or nothing."""
    if args[:1] == ["-n"] and len(args) > 1:
        count, paths = args[1], args[2:]
    elif args and (found := re.fullmatch(r"-n(.+)|-(\d+)", args[0])):
        count, paths = found[1] or found[2], args[1:]
    else:
        count, paths = "10", args
    if not re.fullmatch(r"\+?[1-9]\d*", count):  # `tail -n 0` does not even look for the file
        raise _Unknown(args)
    return count, paths


def _only(texts: Sequence[str], paths: Sequence[str]) -> str:
    if len(paths) > 1:  # with headers between them
        raise _Unknown(paths)
    return "".join(texts)


def _lines(text: str) -> list[str]:
    """The lines, with their newlines."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


def _close(lines: Sequence[str]) -> list[str]:
    """Each line with a newline, as sed and nl end the last line of a file before they go on."""
    return [line if line.endswith("\n") else line + "\n" for line in lines]


def _number(lines: Sequence[str]) -> str:
    return "".join(f"{number:6}\t{line}" for number, line in enumerate(lines, 1))
