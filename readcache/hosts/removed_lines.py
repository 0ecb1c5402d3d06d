"""Blank lines that a host removes from the start of a command's output, as Claude Code and Gemini CLI do."""

from __future__ import annotations

from typing import Any

from readcache import Session
from readcache.model.claims import FileLines, is_blob
from readcache.model.text import split_lines


def numbers_of(command: str, output: str, cwd: str, session: Session) -> dict[str, Any]:
    """Return what `Session.observe` is to know of the line numbers of a command's output, from whose start the host
    removes blank lines. `skipped`: how many lines the command printed first that were removed. `complete`: False if the
    numbers are not known. The file is read only if the command may have printed more lines than there are."""
    claims = session.reading(command, cwd).claims
    first = claims[0] if claims else None
    if not isinstance(first, FileLines) or first.sep is not None or first.lines is None or is_blob(first.keys[0]):
        return {}
    shown, (start, end) = split_lines(output), first.lines
    if not shown or not shown[0].strip() or (len(claims) == 1 and end is not None and len(shown) > end - start):
        return {}
    asked_first = session.read(first.keys[0], start=start, end=start, fresh=True).text
    if not asked_first or asked_first.strip():
        return {}
    there = split_lines(session.read(first.keys[0], start=start, end=end, fresh=True).text)
    skipped = next((at for at, line in enumerate(there) if line.strip()), len(there))
    return {"skipped": skipped} if shown[0] in there[skipped : skipped + 1] else {"complete": False}
