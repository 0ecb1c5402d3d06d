"""The journal: JSON lines that are only ever added, each with the hash of the one before it.

A line that was changed, taken out, put in or moved breaks the chain, and reading says where. Lines cut off at the end
leave a chain that is whole: who wants to be sure of the end keeps the last hash elsewhere (`verify --end`).
"""

from __future__ import annotations

import datetime
import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import AbError

Line = dict[str, Any]
NOTHING = "0" * 64  # the hash before the first line


def canonical(value: Any) -> str:
    """One text for one value, however it was indented. The order of keys counts: arms are tested in theirs."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def sha256_of(value: Any) -> str:
    """The hash of a value, in hex digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """The hash of a file's bytes; "" where there is no such file."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def read_journal(path: Path) -> list[Line]:
    """All lines. AbError for the first that is not as it was written. A last line without its end, as a crash leaves
    it, was never finished, and is not read."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise AbError(f"cannot read {path}: {error.strerror}; `seal` makes it") from error
    lines: list[Line] = []
    previous = NOTHING
    for number, raw in enumerate(text.split("\n")[:-1], 1):
        try:
            line = json.loads(raw)
            said = line.pop("hash")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise AbError(f"{path}:{number}: this is no line of a journal") from error
        if line.get("previous") != previous:
            raise AbError(f"{path}:{number}: the line before it is missing, or was changed")
        if sha256_of(line) != said:
            raise AbError(f"{path}:{number}: this line was changed")
        previous = said
        lines.append({**line, "hash": said})
    return lines


class Journal:
    """A journal that is written to, by one process at a time and any of its threads."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        self._path, self._lock = path, threading.Lock()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise AbError(f"{path} is being written by another process; wait for it, or end it") from error
        self.lines = read_journal(path)
        self._drop_torn_line()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, kind: str, fields: Mapping[str, Any]) -> Line:
        """Adds a line; it is on the disk when this returns."""
        with self._lock:
            previous = self.lines[-1]["hash"] if self.lines else NOTHING
            now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
            line: Line = {"kind": kind, "at": now, **fields, "previous": previous}
            line["hash"] = sha256_of(line)
            self._file.write(f"{canonical(line)}\n".encode())
            self._file.flush()
            os.fsync(self._file.fileno())
            self.lines.append(line)
            return line

    def _drop_torn_line(self) -> None:
        """What a crash left of a line goes: the next one must begin at the beginning of one."""
        data = self._path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            self._file.truncate(whole)
            self.append("torn line dropped", {"bytes": len(data) - whole})
