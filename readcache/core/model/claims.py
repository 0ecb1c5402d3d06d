"""Claims: what a command probably prints, in order, before its output is known.

A claim is a guess from parsing alone. `match` compares claims with the real output and uses only the parts that the
bytes confirm. A wrong claim can lose a saving but never hide a change.

Lines are 1-based and inclusive; an end of None is the end of the file. A *key* names the file that lines belong to: a
canonical absolute path, or `git:REV:path` for a blob.

One rule says which files a write concerns: `concerns`. Invalidation, the order of a call's events, and `explain` use
it. A write names one of these:
- a file;
- a directory, with everything below it;
- a glob, in which `*` is any text, including slashes: `*/src/a.py` names the file at that path below any directory;
- WHOLE_TREE, any file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache

Range = tuple[int, int | None]

ANY_SEPARATOR = "?"  # each line has a number before it, in a form that the output shows

WHOLE_TREE = "*"  # a write whose files cannot be named: `git stash`, `git pull`


@dataclass(frozen=True, slots=True)
class FileLines:
    """Lines of a file. With several keys: lines of these files in order, with unknown borders between them."""

    keys: tuple[str, ...]
    lines: Range | None = (1, None)  # None: unknown lines
    sep: str | None = None  # the separator after printed line numbers, or ANY_SEPARATOR; None: raw lines
    shift: int = 0  # the number shown minus the number of the line in the file
    gaps: bool = False  # lines may be missing in between (grep -n): only the printed numbers are certain
    if_long: bool = False  # `tail` counted them from a line that the file may not have: the numbers need a proof
    likely: str = ""  # the separator that the host says it writes, for ANY_SEPARATOR; empty if it does not say


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that is known beforehand: the text of an echo, or of a heredoc that is printed. Always whole lines."""

    text: str


@dataclass(frozen=True, slots=True)
class Anything:
    """Output that parsing cannot foresee: any number of lines, or none."""


Claim = FileLines | Literal | Anything


@dataclass(frozen=True, slots=True)
class Write:
    """A file that the command wrote, or may have written, before it printed claim number `before`."""

    key: str  # a path, a directory, a pattern, or WHOLE_TREE: see `concerns`
    before: int  # claims[before:] print the files' content after the write
    is_certain: bool = True  # False: a program's text in the command names the file


@dataclass(frozen=True, slots=True)
class Authored:
    """Text in the agent's own command that became a file's content: the body of a heredoc."""

    key: str
    text: str
    first: int  # the line number of its first line in the file; 0 if unknown (appended)
    # It was certainly tried. If it failed, the output has an error message.
    executed: bool = field(default=True, compare=False)
    status_covers: bool = field(default=True, compare=False)  # the whole command's status is 0 only if it succeeded


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that parsing finds out about one command."""

    claims: tuple[Claim, ...] = (Anything(),)
    writes: tuple[Write, ...] = ()
    authored: tuple[Authored, ...] = ()
    parsed: bool = True  # False: the parser refused the command, so nothing is known about it
    only_reads: bool = field(init=False, default=False)  # the command is known to print files and to do nothing else
    is_whole_file: bool = field(init=False, default=False)  # the command prints one whole file as it is on disk

    def __post_init__(self) -> None:
        only_reads = self.parsed and not self.writes and all(isinstance(c, (FileLines, Literal)) for c in self.claims)
        object.__setattr__(self, "only_reads", only_reads)
        object.__setattr__(self, "is_whole_file", only_reads and len(self.claims) == 1 and _is_complete(self.claims[0]))

    @property
    def keys(self) -> frozenset[str]:
        """Every key that the command reads."""
        return frozenset(key for claim in self.claims if isinstance(claim, FileLines) for key in claim.keys)


def without_first(reading: Reading, skipped: int) -> Reading:
    """Return the reading of an output that lost its first `skipped` lines (1 or more). These lines belong to the first
    claim. If that claim prints line numbers, does not say which lines it prints, or prints fewer, it becomes
    `Anything`."""
    first = reading.claims[0] if reading.claims else None
    left: Claim = Anything()
    if isinstance(first, FileLines) and first.sep is None and first.lines is not None:
        start, end = first.lines[0] + skipped, first.lines[1]
        left = replace(first, lines=(start, end)) if end is None or start <= end else left
    return replace(reading, claims=(left, *reading.claims[1:]))


def with_keys(reading: Reading, change: Callable[[str], str]) -> Reading:
    """Return the reading with `change(key)` instead of each key."""
    claims = (
        replace(claim, keys=tuple(dict.fromkeys(map(change, claim.keys)))) if isinstance(claim, FileLines) else claim
        for claim in reading.claims
    )
    writes = (replace(write, key=change(write.key)) for write in reading.writes)
    authored = (replace(text, key=change(text.key)) for text in reading.authored)
    return replace(reading, claims=tuple(claims), writes=tuple(dict.fromkeys(writes)), authored=tuple(authored))


def _is_complete(claim: Claim) -> bool:
    if not isinstance(claim, FileLines) or len(claim.keys) != 1 or is_blob(claim.keys[0]):
        return False
    return claim.lines == (1, None) and not claim.shift and not claim.gaps


def is_blob(key: str) -> bool:
    """Return True for a file in a revision (`git:HEAD:app.py`), which may differ from the file on disk."""
    return not key.startswith(("/", "~"))


OPAQUE = Reading()
UNPARSED = Reading(parsed=False)


@functools.lru_cache(maxsize=4096)
def glob_stem(key: str) -> str | None:
    """Return the part of a glob pattern before its first `*`, `?` or `[`; None if the key is not a pattern."""
    first = [at for at in map(key.find, "*?[") if at >= 0]
    return key[: min(first)] if first else None


def concerns(written: str, key: str) -> bool:
    """Return True if a write to `written` concerns the file of `key`. `*.py` and `/w/src` concern /w/src/a.py."""
    if written in (key, WHOLE_TREE) or key.startswith(written.rstrip("/") + "/"):
        return True
    return glob_stem(written) is not None and fnmatchcase(key, written)


@lru_cache(maxsize=4096)
def file_name_of(written: str) -> str | None:
    """Return the file name shared by all files that a write to the pattern `*/…` concerns; None for other writes."""
    name = written.rpartition("/")[2]
    return name if written.startswith("*/") and name and glob_stem(name) is None else None


def common_prefix(written: str) -> str:
    """Return the common prefix of all keys that a write to a file, directory or glob concerns."""
    stem = glob_stem(written)
    return written.rstrip("/") if stem is None else stem
