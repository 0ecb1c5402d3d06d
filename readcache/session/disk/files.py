"""Read a file of this machine as one version: the file's state is the same before and after the read.

The read tool takes lines of that version, as `cat` and `sed -n` print them. A file that keeps changing is shown, but
not credited. A fingerprint is the hash of the bytes, and finds changes by others. No omission depends on it: omissions
compare the bytes that were just read.

No stat value proves that a file is unchanged. Coarse clocks do not move between two writes, and times can be set back.
A mapped page can be written again without a new time. So each check hashes the file, which takes 20 µs for 8 KB and
80 ms for 100 MB. The hash is BLAKE2, because two files with the same xxh3 are easily made.

Functions of `os` are used by module attribute, so that a mocked file system sees them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

from readcache.core.model.reply import Reason

BLOCK = 1024 * 1024  # bytes read at a time
TRIES = 3  # attempts to read a file that is being written

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)  # a FIFO without a writer would block

T = TypeVar("T")
# Bytes. A longer text would not fit a model's context. Larger files are read only up to a bounded range.
MOST_BYTES = 64 * 1024 * 1024


def read_stable(path: str, read: Callable[[int, os.stat_result], T]) -> tuple[T, bool]:
    """Return (result of `read(descriptor, state)` for the regular file at `path`, True if the file did not change).

    Links are followed. If the file changes during the read, `read` is called again from the beginning, at most TRIES
    times in all. Raise OSError. Raise ValueError, with a reason in words, for anything except a regular file, and for a
    path with a NUL.
    """
    before = os.stat(path)
    _require_regular(before)  # before opening, which has effects: the writer that waits at a FIFO would continue
    fd = os.open(path, _READ)
    try:
        for attempt in range(TRIES):
            if attempt:
                os.lseek(fd, 0, os.SEEK_SET)
            got = read(fd, before)
            after = os.fstat(fd)
            if _same_state(before, after):
                return got, True
            before = after
            _require_regular(before)
        return got, False
    finally:
        os.close(fd)


def _same_state(a: os.stat_result, b: os.stat_result) -> bool:
    same_times = a.st_mtime_ns == b.st_mtime_ns and a.st_ctime_ns == b.st_ctime_ns
    return same_times and a.st_size == b.st_size and a.st_ino == b.st_ino and a.st_dev == b.st_dev


def _require_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("is a directory" if stat.S_ISDIR(found.st_mode) else "not a regular file")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """One version of a file. Two versions have the same bytes if their digests (BLAKE2b, 16 bytes) are equal."""

    digest: bytes
    head: bytes  # the first bytes: at least as many as requested, or the whole file
    is_truncated: bool  # the file has more bytes than `head`


def take_fingerprint(path: str, most: int = 0) -> Fingerprint | None:
    """Return the fingerprint of the file at `path` (links are followed), with its first `most` bytes.

    Return None for anything except a regular file, and for a file that cannot be read or keeps changing. Never
    raise."""
    try:
        found, is_stable = read_stable(path, lambda fd, state: _hash(fd, state.st_size, most))
    except (OSError, ValueError):
        return None
    return found if is_stable else None


def _hash(fd: int, size: int, most: int) -> Fingerprint:
    digest = blake2b(digest_size=16)
    head: list[bytes] = []
    left = size or BLOCK  # files of /proc report a size of 0
    kept = done = 0
    while block := os.read(fd, min(left + 1, BLOCK)):  # one byte more shows that it grew; it may grow without end
        left -= len(block)
        done += len(block)
        digest.update(block)
        if kept < most:
            head.append(block)
            kept += len(block)
    return Fingerprint(digest.digest(), b"".join(head), kept < done)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The text that a read tool or a command prints. `skip_reason` is set if the text is not a file's, is not reliable,
    or may end anywhere, and if nothing ran."""

    text: str
    exit_code: int = 0
    skip_reason: Reason | None = None


def read_lines(path: str, start: int, end: int | None, *, numbered: bool) -> ToolOutput:
    """Return lines `start` to `end` (1-based, inclusive; None: to the end) of a regular file. A range past the end is
    empty. Never raise: if the file cannot be read, return one line that says why, and exit code 1."""
    if start < 1 or (end is not None and end < start):
        why = "lines count from 1, the end is not before the start"
        return _refused(path, f"lines {start} to {end} are not a range: {why}")
    try:
        data, is_stable = read_stable(path, lambda fd, state: _read(fd, state.st_size, end))
    except (OSError, ValueError) as error:  # ValueError: a bad path, not a regular file, or too large
        return _refused(path, getattr(error, "strerror", None) or str(error))
    text = _slice(data, start, end).decode("utf-8", "replace")
    return ToolOutput(_number(text, start) if numbered else text, skip_reason=None if is_stable else Reason.UNSTABLE)


def _read(fd: int, size: int, end: int | None) -> bytes:
    """Return the file's bytes, at least up to line `end`. Raise OSError or ValueError."""
    if size > MOST_BYTES:
        return _read_blocks(fd, end)
    # Files of /proc report a size of 0, and some of them can be read only once. Other files may have grown.
    data = os.read(fd, size + 1 if size else BLOCK)
    return data if len(data) == size else _read_blocks(fd, end, data)


def _read_blocks(fd: int, end: int | None, first: bytes = b"") -> bytes:
    """Return the file up to line `end`, or up to one block more. `first` was read already. Raise ValueError if that is
    more than MOST_BYTES."""
    parts, lines, size = [first], first.count(b"\n"), len(first)
    while end is None or lines < end:
        if size > MOST_BYTES:
            raise ValueError(f"more than {MOST_BYTES} bytes: read an earlier range of lines, or use a shell command")
        block = os.read(fd, BLOCK)
        if not block:
            break
        parts.append(block)
        lines += block.count(b"\n")
        size += len(block)
    return b"".join(parts)


def _slice(data: bytes, start: int, end: int | None) -> bytes:
    """Return lines `start` to `end`, each with its newline if it has one."""
    if start > len(data):  # there are no more lines than bytes, and `split` does not take larger numbers
        return b""
    if start > 1:
        parts = data.split(b"\n", start - 1)
        data = parts[-1] if len(parts) == start else b""
    if end is None:
        return data
    count = min(end - start + 1, len(data))
    parts = data.split(b"\n", count)
    return data if len(parts) <= count else data[: len(data) - len(parts[-1])]


def _number(text: str, start: int) -> str:
    """Return the text with line numbers, as `cat -n` prints them."""
    if not text:
        return text
    final = "\n" if text.endswith("\n") else ""
    lines = text.removesuffix("\n").split("\n")
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, start)) + final


def _refused(path: str, why: str) -> ToolOutput:
    name = path if path.isprintable() else repr(path)  # one line, and text that can be encoded
    return ToolOutput(f"readcache: cannot read {name}: {why}\n", 1, Reason.UNREADABLE)


def real_paths(names: Iterable[str], directory: str) -> frozenset[str]:
    """Return the real paths of the names that are links, or have a link in their path. `directory`: relative names
    start there. Names that are not file names are skipped. Never raises."""
    home = os.path.expanduser("~")  # not of `~name`: looking up another user may take long
    given = {home + name[1:] if name.startswith("~/") else os.path.join(directory, name) for name in names}
    found = ((path, os.path.realpath(path)) for path in given if os.path.lexists(path))
    return frozenset(real for path, real in found if real != path)


def without_dots(key: str) -> str:
    """Return the key without `..`, as the kernel follows it: `link/..` is the parent of the directory to which the link
    leads. Other links are not followed. Never raises."""
    if "/.." not in key or not key.startswith("/"):
        return key
    path = "/"
    for name in key.split("/"):
        if name == "..":
            path = os.path.dirname(os.path.realpath(path) if os.path.islink(path) else path)
        else:
            path = os.path.join(path, name)
    return path
