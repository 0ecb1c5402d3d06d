"""The file system, for the read tool and the restore plan. Reads and looks; decides nothing.

Functions of `os` and `open` are used by module attribute, so that a mocked file system sees them.
"""

from __future__ import annotations

import fnmatch
import os
import stat
from dataclasses import dataclass

from readcache.reply import Reason
from readcache.text import split_lines

# Bytes. A larger file is read by a shell command or not at all; it would not fit a model's context anyway.
MOST_BYTES = 64 * 1024 * 1024
# Names that tend to hold secrets (the list is gitleaks' and GitHub's secret scanning's file names, shortened).
SECRET_NAMES = (".env", ".env.*", "*.pem", "*.key", "id_rsa*", "id_ed25519*", "credentials*", ".netrc", "*.p12")


@dataclass(frozen=True, slots=True)
class Got:
    """The text that a read tool prints; `trouble` when it is not the file's."""

    text: str
    exit_code: int = 0
    trouble: Reason | None = None


def read_lines(path: str, start: int, end: int | None, *, numbered: bool) -> Got:
    """Lines start to end of a regular file, as `cat` or `cat -n` would print them. Never raises."""
    if start < 1 or (end is not None and end < start):
        return _refused(path, f"lines {start} to {end} are not a range: they count from 1")
    try:
        data = _read(path)
    except OSError as error:
        return _refused(path, error.strerror or str(error))
    except ValueError as error:  # a NUL in the path; not a regular file; too large
        return _refused(path, str(error))
    text = data.decode("utf-8", "replace")
    if start == 1 and end is None and not numbered:
        return Got(text)
    lines = text.split("\n")
    last_has_newline = lines[-1] == ""
    if last_has_newline:
        lines.pop()
    chosen = lines[start - 1 : end]
    reaches_end = end is None or end >= len(lines)
    if numbered:
        chosen = [f"{number:6}\t{line}" for number, line in enumerate(chosen, start)]
    final = "" if not chosen or (reaches_end and not last_has_newline) else "\n"
    return Got("\n".join(chosen) + final)


def _read(path: str) -> bytes:
    with open(path, "rb", opener=_open_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a regular file")
        if status.st_size > MOST_BYTES:
            raise ValueError(f"larger than {MOST_BYTES} bytes: read it in parts with a shell command")
        return file.read()


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a FIFO without a writer would block


def _refused(path: str, why: str) -> Got:
    return Got(f"readcache: cannot read {path}: {why}\n", 1, Reason.UNREADABLE)


def current_lines(path: str, start: int, end: int) -> list[str] | None:
    """Lines start to end as they are on disk, or None when the file cannot be read or is not text."""
    try:
        data = _read(path)
    except (OSError, ValueError):
        return None
    if b"\0" in data:
        return None
    return split_lines(data.decode("utf-8", "replace"))[start - 1 : end]


def why_not_restored(path: str, protected: tuple[str, ...]) -> str | None:
    """Why a path must not be put back into a conversation; None when it may."""
    name = path.rsplit("/", 1)[-1]
    if path.startswith("git:"):
        return "not a file of the work tree"
    if any(fnmatch.fnmatchcase(path, glob) or fnmatch.fnmatchcase(name, glob) for glob in protected):
        return "protected"
    if any(fnmatch.fnmatchcase(name, glob) for glob in SECRET_NAMES):
        return "looks like a secret"
    return None
