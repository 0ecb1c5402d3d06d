"""The files that the tools of `readcache mcp` may touch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from readcache import UsageError


def root_directories(uris: Sequence[str]) -> list[str]:
    """Return the directories that a client's roots name. URIs other than local `file:` ones are skipped."""
    parts = [urlsplit(uri) for uri in uris]
    return [unquote(part.path) for part in parts if part.scheme == "file" and part.netloc in ("", "localhost")]


def allowed_path(path: str, roots: Sequence[str], base: str) -> str:
    """Return `path` as an absolute path. Raise UsageError if it, or the target of its links, is outside all roots.

    A relative path starts at `base`, or at the first root if `base` is outside all roots.
    """
    if "\0" in path:
        raise UsageError("the path contains a NUL character: remove it")
    start = base if _leads_into(base, roots) else roots[0] if roots else base
    wanted = os.path.normpath(os.path.join(start, path))
    if not _leads_into(wanted, roots):
        allowed = ", ".join(roots) or "no directory at all"
        real = os.path.realpath(wanted)
        link = f", since it is a link to {real}" if _is_within(wanted, roots) else ""
        raise UsageError(f"{path} is outside what this client allows{link}: give a path in {allowed}")
    return wanted


def _leads_into(path: str, roots: Sequence[str]) -> bool:
    return _is_within(os.path.realpath(path), [os.path.realpath(root) for root in roots])


def _is_within(path: str, roots: Sequence[str]) -> bool:
    return any(os.path.commonpath((path, os.path.abspath(root))) == os.path.abspath(root) for root in roots)
