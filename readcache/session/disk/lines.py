"""The read tool's side of the file system: lines of a file, as `cat` and `sed -n` would print them. Decides nothing.

What is read was read whole between two equal looks at the file's state; a file that will not hold still is shown and
not credited. Functions of `os` are used by module attribute, so that a mocked file system sees them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from readcache.core.model.reply import Reason
from readcache.session.disk.stable import BLOCK, read_stable

# Bytes. A longer text would not fit a model's context; of a larger file only a bounded range is read.
MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Got:
    """The text that a read tool prints; `skip_reason` when it is not a file's, or not to be relied upon."""

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
