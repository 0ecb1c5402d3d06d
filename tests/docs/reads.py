"""The table of odd files: each row is a real file, read twice by a new session."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from readcache import Outcome, Reply, Session
from tests.docs.tables import table

BODY = "".join(f"line {n} of a file that is long enough to be worth a marker\n" for n in range(1, 13)).encode()


def _link(path: Path) -> None:
    path.with_name("target").write_bytes(BODY)
    path.symlink_to("target")


# what is read -> how it is made, and the lines that are asked for
ROWS: dict[str, tuple[Callable[[Path], object], int, int | None]] = {
    "a file without a final newline": (lambda path: path.write_bytes(BODY[:-1]), 1, None),
    "CRLF or CR in its lines, or a byte order mark": (
        lambda path: path.write_bytes(b"\xef\xbb\xbf" + BODY.replace(b"e 5", b"e\r5").replace(b"\n", b"\r\n")),
        1,
        None,
    ),
    "bytes that are not UTF-8": (lambda path: path.write_bytes(BODY.replace(b"of", b"\xff\xfe")), 1, None),
    "NUL bytes": (lambda path: path.write_bytes(BODY + b"\0"), 1, None),
    "an empty file": (lambda path: path.write_bytes(b""), 1, None),
    "lines past its end": (lambda path: path.write_bytes(BODY), 40, 60),
    "lines 5 to 4": (lambda path: path.write_bytes(BODY), 5, 4),
    "a symbolic link to a file": (_link, 1, None),
    "a directory": (lambda path: path.mkdir(), 1, None),
    "a FIFO, a socket, a device": (lambda path: os.mkfifo(path), 1, None),
    "no file": (lambda _path: None, 1, None),
}


def reads() -> str:
    """The answers of the read tool to odd files."""
    return table(("what is read", "first answer", "second answer"), _rows())


def _rows() -> Iterable[tuple[str, str, str]]:
    for what, (make, start, end) in ROWS.items():
        with tempfile.TemporaryDirectory() as directory:
            make(Path(directory, "f"))
            session = Session(directory)
            first, second = (_told(session.read("f", start=start, end=end), directory) for _ in range(2))
            yield what, first, "the same" if second == first else second


def _told(reply: Reply, directory: str) -> str:
    if reply.exit_code:
        return "`" + reply.text.strip().replace(directory, "DIR") + "`, exit code 1"
    if reply.outcome is Outcome.UNCHANGED:
        return "a marker"
    if not reply.text:
        return "nothing"
    return f"all of it (`{reply.reason.value}`)"
