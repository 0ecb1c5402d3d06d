"""The arguments of a command: words, if they are known, and options split as getopt splits them. Redirections, too."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from readcache.core.model.claims import FileLines
from readcache.core.model.paths import canonical_path
from readcache.core.shell.streams import ANYTHING, Claims, Stream
from readcache.core.shell.syntax import Redirect, Variable, Word, WordText, has_glob, literal


class CannotTell(Exception):
    """The error raised if only running the command would show its output. Never leaves the package `shell`."""


@dataclass(frozen=True, slots=True)
class Arg:
    """One argument: its text, and its path for use as a file name.

    Each is None if only running the command would show it. `glob`: True if the shell expands the argument as a pattern.
    """

    text: str | None
    path: str | None
    glob: bool = False

    @property
    def known(self) -> str:
        """The text. Raise CannotTell if it is not known or is a glob."""
        if self.text is None or self.glob:
            raise CannotTell
        return self.text


def text_arg(text: str) -> Arg:
    """Return an argument with this literal text, as after `-n5` or in a list that readcache builds itself."""
    return Arg(text, text)


@dataclass(frozen=True, slots=True)
class Program:
    """A simple command that is about to run. `cwd` is None if the directory is not known."""

    name: str
    args: tuple[Arg, ...]
    stdin: Stream
    cwd: str | None

    def key(self, arg: Arg) -> str | None:
        """Return the key of the file that `arg` names: a canonical path. A glob stays a pattern.

        Return None if the path is not known or empty, or if it is relative and the directory is not known.
        """
        path = arg.path
        if not path:
            return None
        if self.cwd is None and not canonical_path(path, "").startswith(("/", "~")):
            return None
        return canonical_path(path, self.cwd or "")

    def lines(self, arg: Arg) -> Claims:
        """Return the claims about the content of the file `arg`; `-` is stdin.

        Return ANYTHING for an unknown file or a glob.
        """
        if arg.text == "-":
            return self.stdin.claims
        key = self.key(arg)
        return ANYTHING if key is None or arg.glob else (FileLines((key,)),)

    def input(self, operands: Sequence[Arg]) -> Claims:
        """Return the claims about all the files, one after the other, or about stdin if there are no operands."""
        if not operands:
            return self.stdin.claims
        return tuple(claim for operand in operands for claim in self.lines(operand))


@dataclass(frozen=True, slots=True)
class Options:
    """Options in the order given, as (letter, value) with "" for no value, and the operands."""

    given: tuple[tuple[str, str], ...]
    operands: tuple[Arg, ...]

    def value(self, letter: str) -> str | None:
        """Return the last value given for the option, or None."""
        return next((value for name, value in reversed(self.given) if name == letter), None)

    def has(self, letters: str) -> bool:
        """Return True if any of these options is given."""
        return any(name in letters for name, _ in self.given)


def options(args: Sequence[Arg], spec: str, long: Mapping[str, str] | None = None) -> Options:
    """Split `args` into options and operands as GNU getopt does.

    `spec` is written as for getopt(3): "n:qi::". `long` maps long names to letters. Raise CannotTell for an option that
    is in neither of them, for a missing value, and for a value that is not known.
    """
    given: list[tuple[str, str]] = []
    operands: list[Arg] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        text = arg.text
        if text is None or text == "-" or not text.startswith("-"):
            operands.append(arg)
        elif text == "--":
            operands.extend(rest)
            break
        elif text.startswith("--"):
            given.append(_long(text, rest, spec, long or {}))
        else:
            given.extend(_cluster(text[1:], rest, spec))
    return Options(tuple(given), tuple(operands))


def _long(text: str, rest: list[Arg], spec: str, long: Mapping[str, str]) -> tuple[str, str]:
    """Return the option and the value in `--name`, `--name=value` or `--name value`.

    Raise CannotTell for an unknown option.
    """
    name, equals, value = text[2:].partition("=")
    letter = long.get(name)
    if letter is None:
        raise CannotTell
    return letter, value if equals or _takes(letter, spec) != ":" else _following(rest)


def _cluster(text: str, rest: list[Arg], spec: str) -> list[tuple[str, str]]:
    """Return the options in `-abc5`, with their values. Raise CannotTell for an unknown option."""
    out: list[tuple[str, str]] = []
    for at, letter in enumerate(text, 1):
        if letter == ":" or letter not in spec:
            raise CannotTell
        takes = _takes(letter, spec)
        if takes:
            value = text[at:] or ("" if takes == "::" else _following(rest))
            return [*out, (letter, value)]
        out.append((letter, ""))
    return out


def _takes(letter: str, spec: str) -> str:
    """Return the colons of an option: ":" if it needs a value, "::" if its own word may contain one, otherwise ""."""
    behind = spec.partition(letter)[2]
    return behind[: len(behind) - len(behind.lstrip(":"))]


def _following(rest: list[Arg]) -> str:
    if not rest:
        raise CannotTell
    return rest.pop(0).known


def integer(text: str) -> int:
    """Return a plain number of lines. Raise CannotTell for any other text (`10k`, ``)."""
    if not text.isascii() or not text.isdigit():
        raise CannotTell
    return int(text)


_DEVICE = re.compile("/dev/(?!shm/)")  # the paths below /dev/shm are real files
_SAME_OUTPUT = ("/dev/stdout", "/dev/stderr", "/dev/tty")
_GLOB = re.compile(r"[*?[]")


@lru_cache(maxsize=1024)
def _plain(part: WordText) -> Arg | None:
    """Return the argument that is one literal text, as most are.

    Return None if it starts with `~`: it may mean a home directory.
    """
    if part.text.startswith("~"):
        return None
    return Arg(part.text, part.text, not part.quoted and _GLOB.search(part.text) is not None)


def arg_of(word: Word, variables: Mapping[str, str], cwd: str | None) -> Arg:
    """Return the argument that `word` becomes. `$HOME` and `$PWD` are known as paths only."""
    first = word.parts[0] if word.parts else WordText("")
    if len(word.parts) == 1 and isinstance(first, WordText) and (plain := _plain(first)) is not None:
        return plain
    text = literal(word, variables)
    defaults = {"HOME": "~", "PWD": cwd} if cwd else {"HOME": "~"}
    path = text if text is not None else literal(word, {**defaults, **variables})
    tilde = isinstance(first, Variable) or (isinstance(first, WordText) and not first.quoted)
    if path is not None and path.startswith("~") and not tilde:
        path = "./" + path
    if text is not None and text.startswith("~") and tilde:
        text = None
    return Arg(text, path, has_glob(word))


def written_by(item: Redirect, target: Arg, cwd: str | None) -> tuple[bool, str | None]:
    """Return, for one redirection, whether the output still reaches the reader, and the key of the written file.

    The key is None if no file is written (a device, another descriptor) or if the file is not known.
    """
    if item.op == ">&" and re.fullmatch(r"\d+-?|-", target.text or ""):
        return target.text != "-", None
    key = Program("", (), Stream(), cwd).key(target)
    if key in _SAME_OUTPUT:
        return True, None
    return False, None if key is None or _DEVICE.match(key) else key


@dataclass(frozen=True, slots=True)
class Redirected:
    """The streams of a command after its redirections: its stdin, and the destination of its stdout.

    `prints`: True if the stdout is still printed. `file`: the key of the file that gets it otherwise, None if not
    known. `appends`: True if the file is not overwritten.
    """

    stdin: Stream
    prints: bool = True
    file: str | None = None
    appends: bool = False
