"""Words and redirections as the shell hands them to a program, as far as that is known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from readcache.core.shell.arguments import Arg, Program
from readcache.core.shell.streams import Stream
from readcache.core.shell.syntax import Redirect, Variable, Word, WordText, has_glob, literal

_DEVICE = re.compile("/dev/(?!shm/)")  # what is below /dev/shm are files
_SAME_OUTPUT = ("/dev/stdout", "/dev/stderr", "/dev/tty")
_GLOB = re.compile(r"[*?[]")


@lru_cache(maxsize=1024)
def _plain(part: WordText) -> Arg | None:
    """The argument that is one literal text; None where a home directory may be meant. Most arguments are such."""
    if part.text.startswith("~"):
        return None
    return Arg(part.text, part.text, not part.quoted and _GLOB.search(part.text) is not None)


def arg_of(word: Word, variables: Mapping[str, str], cwd: str | None) -> Arg:
    """The argument that `word` becomes. `$HOME` and `$PWD` are known as paths only."""
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
    """(whether the output still reaches the reader, the key of the written file) for one redirection."""
    if item.op == ">&" and re.fullmatch(r"\d+-?|-", target.text or ""):
        return target.text != "-", None
    key = Program("", (), Stream(), cwd).key(target)
    if key in _SAME_OUTPUT:
        return True, None
    return False, None if key is None or _DEVICE.match(key) else key


@dataclass(frozen=True, slots=True)
class Redirected:
    """What a command reads, whether its stdout is still printed, and else the file that it goes into."""

    stdin: Stream
    prints: bool = True
    file: str | None = None
    appends: bool = False
