"""Files of this machine as one version each: read whole between two equal looks at the file's state.

The read tool takes lines of it, as `cat` and `sed -n` would print them; a file that will not hold still is shown and
not credited. A fingerprint is the hash of its bytes, and serves to find what others changed. No omission rests on it:
those compare the bytes that were just read. No stat value proves that a file is unchanged: coarse clocks do not move
between two writes, and times are set back. A page that was mapped can be written again and leave no time. So a file is
hashed at each look: 20 µs for one of 8 KB, 80 ms for one of 100 MB; by BLAKE2, since two files of one xxh3 are made at
will. Functions of `os` are used by module attribute, so that a mocked file system sees them.
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
TRIES = 3  # at a file that is being written

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)  # a FIFO without a writer would block

T = TypeVar("T")
# Bytes. A longer text would not fit a model's context; of a larger file only a bounded range is read.
MOST_BYTES = 64 * 1024 * 1024


def read_stable(path: str, read: Callable[[int, os.stat_result], T]) -> tuple[T, bool]:
    """(what `read(descriptor, state)` gave of the regular file at `path`, whether the file held still meanwhile).

    Links are followed. If the file changes meanwhile, `read` is called again from the beginning, at most TRIES times in
    all. OSError; ValueError with a reason in words for anything but a regular file, and for a path with a NUL.
    """
    before = os.stat(path)
    _require_regular(before)  # first: opening a FIFO or a device does something, a writer that waits would go on
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
    """One version of a file. Two are of the same bytes if their digests (BLAKE2b, 16 bytes) are equal."""

    digest: bytes
    head: bytes  # the first bytes: somewhat more than were asked for, or all there are
    is_truncated: bool  # there are more than these


def take_fingerprint(path: str, most: int = 0) -> Fingerprint | None:
    """The version that stands at `path` (links are followed), with its first `most` bytes.

    None for what is not a regular file, cannot be read, or would not hold still. Never raises."""
    try:
        found, is_stable = read_stable(path, lambda fd, state: _hash(fd, state.st_size, most))
    except (OSError, ValueError):
        return None
    return found if is_stable else None


def _hash(fd: int, size: int, most: int) -> Fingerprint:
    digest = blake2b(digest_size=16)
    head: list[bytes] = []
    left = size or BLOCK  # files of /proc say that they are empty
    kept = done = 0
    while block := os.read(fd, min(left + 1, BLOCK)):  # one byte more tells that it grew, which may go on for ever
        left -= len(block)
        done += len(block)
        digest.update(block)
        if kept < most:
            head.append(block)
            kept += len(block)
    return Fingerprint(digest.digest(), b"".join(head), kept < done)


@dataclass(frozen=True, slots=True)
class Got:
    """The text that a read tool prints; `trouble` when it is not a file's, or not to be relied upon."""

    text: str
    exit_code: int = 0
    skip_reason: Reason | None = None


def read_lines(path: str, start: int, end: int | None, *, numbered: bool) -> Got:
    """Lines `start` to `end` (1-based inclusive; None: to the end) of a regular file. A range past the end is empty.
    Never raises: what cannot be read gives one line that says why, and exit code 1."""
    if start < 1 or (end is not None and end < start):
        why = "lines count from 1, the end is not before the start"
        return _refused(path, f"lines {start} to {end} are not a range: {why}")
    try:
        data, is_stable = read_stable(path, lambda fd, state: _read(fd, state.st_size, end))
    except OSError as error:
        return _refused(path, error.strerror or str(error))
    except ValueError as error:  # a NUL or a lone surrogate in the path; not a regular file; too large
        return _refused(path, str(error))
    text = _slice(data, start, end).decode("utf-8", "replace")
    return Got(_number(text, start) if numbered else text, skip_reason=None if is_stable else Reason.UNSTABLE)


def _read(fd: int, size: int, end: int | None) -> bytes:
    """The file's bytes, at least up to line `end`. Raises OSError, ValueError."""
    if size > MOST_BYTES:
        return _read_blocks(fd, end)
    # Files of /proc say that they are empty, and some give no second piece; others may have grown.
    data = os.read(fd, size + 1 if size else BLOCK)
    return data if len(data) == size else _read_blocks(fd, end, data)


def _read_blocks(fd: int, end: int | None, first: bytes = b"") -> bytes:
    """The file up to line `end` and somewhat more; `first` has been read already."""
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
    """Lines start to end, each with its newline where it has one."""
    if start > len(data):  # there are no more lines than bytes; larger numbers are too large for `split`
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
    """As `cat -n` prints it."""
    if not text:
        return text
    final = "\n" if text.endswith("\n") else ""
    lines = text.removesuffix("\n").split("\n")
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, start)) + final


def _refused(path: str, why: str) -> Got:
    name = path if path.isprintable() else repr(path)  # one line, and text that can be encoded
    return Got(f"readcache: cannot read {name}: {why}\n", 1, Reason.UNREADABLE)


def real_paths(names: Iterable[str], directory: str) -> frozenset[str]:
    """Return the real paths of the names that are links, or have a link in their path. `directory`: relative names
    start there. Names that are not file names are skipped. Never raises."""
    home = os.path.expanduser("~")  # not of `~name`: looking up another user may take long
    given = {home + name[1:] if name.startswith("~/") else os.path.join(directory, name) for name in names}
    found = ((path, os.path.realpath(path)) for path in given if os.path.lexists(path))
    return frozenset(real for path, real in found if real != path)
