"""The files that the tools of `readcache mcp` may touch, and how they change them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from readcache import UsageError


def root_directories(uris: Sequence[str]) -> list[str]:
    """The directories that a client's roots name. URIs other than local `file:` ones are skipped."""
    parts = [urlsplit(uri) for uri in uris]
    return [unquote(part.path) for part in parts if part.scheme == "file" and part.netloc in ("", "localhost")]


def allowed_path(path: str, roots: Sequence[str], base: str) -> str:
    """`path`, absolute. Relative ones start at `base`, or at the first root if `base` is outside all roots. UsageError
    when it, or what it leads to by links, is outside of all roots."""
    if "\0" in path:
        raise UsageError("the path contains a NUL character: remove it")
    start = base if _leads_into(base, roots) else roots[0] if roots else base
    wanted = os.path.normpath(os.path.join(start, path))
    if not _leads_into(wanted, roots):
        allowed = ", ".join(roots) or "no directory at all"
        real = os.path.realpath(wanted)
        link = f", since it is a link to {real}" if _stands_in(wanted, roots) else ""
        raise UsageError(f"{path} is outside what this client allows{link}: give a path in {allowed}")
    return wanted


def _leads_into(path: str, roots: Sequence[str]) -> bool:
    return _stands_in(os.path.realpath(path), [os.path.realpath(root) for root in roots])


def _stands_in(path: str, roots: Sequence[str]) -> bool:
    return any(os.path.commonpath((path, os.path.abspath(root))) == os.path.abspath(root) for root in roots)


def encoded(text: str) -> bytes:
    """The bytes of a text in a file. UsageError for a text that UTF-8 cannot encode."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(
            "the text contains half of a surrogate pair, which is not a character; nothing was written"
        ) from None


class Edited(NamedTuple):
    """What an edit did: the bytes of the file now, and the number of the line where the old text began."""

    data: bytes
    line: int


def replace_once(data: bytes, old: str, new: str, path: str) -> Edited:
    """The file's bytes with `old` replaced by `new`. UsageError unless `old` stands there exactly once, and differs."""
    wanted = encoded(old)
    if old == new:
        raise UsageError("old and new are identical: nothing was changed")
    at = data.find(wanted)
    if at < 0:
        crlf = data.find(wanted.replace(b"\n", b"\r\n")) >= 0
        hint = (
            "its lines end with \\r\\n there" if crlf else "read the file, and copy the text exactly, blanks included"
        )
        raise UsageError(f"old was not found in {path}: {hint}; nothing was changed")
    if data.find(wanted, at + 1) >= 0:
        count = sum(data.startswith(wanted, place) for place in range(len(data)))
        raise UsageError(f"old occurs {count} times in {path}: include more context; nothing was changed")
    return Edited(data[:at] + encoded(new) + data[at + len(wanted) :], data.count(b"\n", 0, at) + 1)


def read_bytes(path: str) -> bytes:
    """All of a regular file. UsageError when it cannot be read."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise UsageError(f"{path} is not a regular file")
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def write_bytes(path: str, data: bytes) -> bool:
    """Puts them into the file, and makes the directories that it needs. True: it was not there before. UsageError when
    that fails."""
    is_new = not os.path.exists(path)
    try:
        if not is_new and not os.path.isfile(path):
            raise UsageError(f"{path} is not a regular file; nothing was written")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    return is_new
