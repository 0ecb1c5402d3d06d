"""List the files that a reader can see, each with the version that it was shown.

Only bytes prove that the disk still has that version: `on_disk` compares the visible lines with the file's lines.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from readcache.core.model.key_view import VisibleSpan
from readcache.core.model.spans import SpanMap, Spans, merge_spans
from readcache.core.model.text import split_lines
from readcache.core.model.view import View
from readcache.session.disk.files import read_lines

_LAST = 1 << 60  # past the end of any file


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file with visible lines.

    `ranges`: the visible lines of the newest version that was shown. `call_id`: the newest call or section that shows
    some of them. `hash`: the SHA-256, in hex, of the file's lines with a newline after each. None unless the whole file
    is visible. `mtime`: seconds since the epoch, if the disk has this version. `on_disk`: True if the lines on disk are
    the visible ones. None if the files are not on this machine.
    """

    path: str
    ranges: Spans
    call_id: str
    hash: str | None = None
    mtime: float | None = None
    on_disk: bool | None = None


def shown_files(view: View, *, local: bool) -> list[ShownFile]:
    """Return the files that are visible with line numbers, by path. `local`: the files are on this machine, and each is
    read once. Never raise because of the disk."""
    found = (_shown_file(view, key, local=local) for key in view.known_keys() if key.startswith("/"))
    return [file for file in found if file is not None]


def _shown_file(view: View, key: str, *, local: bool) -> ShownFile | None:
    """Return what is visible of one file; None if no line of it is visible with its number."""
    spans, lines, total = SpanMap[VisibleSpan](), dict[int, str](), None
    known = view.key(key)
    newest = known.current or [one for one in known.stale if one.delivery is known.stale[-1].delivery]
    for visible in newest:
        mapped = visible.mapped
        if mapped.first:
            spans.assign(mapped.first, mapped.first + mapped.count - 1, visible)
            lines.update(enumerate(view.bodies(visible), mapped.first))
            total = mapped.first + mapped.count - 1 if mapped.eof else total
    overlaps = spans.overlaps(1, _LAST)
    if not overlaps:
        return None
    ranges = merge_spans((start, end) for start, end, _ in overlaps)
    call_id = max((visible for *_, visible in overlaps), key=lambda visible: visible.delivery.order).event.call_id
    whole = "".join(f"{lines[n]}\n" for n in range(1, total + 1)) if ranges == ((1, total),) and total else None
    name = None if whole is None else sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()
    if not local:
        return ShownFile(key, ranges, call_id, name)
    mtime = _mtime_with(key, lines, total)
    return ShownFile(key, ranges, call_id, name, mtime, mtime is not None)


def _mtime_with(path: str, lines: Mapping[int, str], total: int | None) -> float | None:
    """Return when the file was modified, in seconds since the epoch, if it has these lines at their numbers, and
    `total` lines if that is known. Return None otherwise."""
    try:
        mtime = os.stat(path).st_mtime  # before the read: a later write has a later time
    except (OSError, ValueError):
        return None
    got = read_lines(path, 1, None, numbered=False)
    on_disk = split_lines(got.text)
    if got.skip_reason is not None or (total is not None and total != len(on_disk)):
        return None
    has_all = max(lines) <= len(on_disk) and all(on_disk[number - 1] == line for number, line in lines.items())
    return mtime if has_all else None
