"""Words and redirections as the shell passes them to a program, if they are known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from readcache.core.shell.arguments import Arg, Program
from readcache.core.shell.streams import Stream
from readcache.core.shell.syntax import Redirect, Variable, Word, WordText, has_glob, literal

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
