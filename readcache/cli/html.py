"""A page of `report`, `gain` or `replay` as a file."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress

from readcache.cli.terminal import say
from readcache.model.errors import ReadcacheError, UsageError

# What others may do with a page: it holds the contents of files, or the names of sessions.
MODE = 0o600


def write_html(output: str, make: Callable[[Callable[[str], object]], object], note: str = "") -> None:
    """Writes the page to a file that only this user may read, whole or not at all, and says so, with the note; or to
    stdout for `-`. UsageError if the file exists and is not a page of ours."""
    if output == "-":
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # the page says that it is
        make(sys.stdout.write)
        return
    target = os.path.realpath(output)
    if os.path.lexists(target) and not os.path.isfile(target):
        raise UsageError(f"{output} is not a file that can be written: give another one, or - for stdout")
    if os.path.exists(target) and not _is_page(target):
        raise UsageError(f"{output} exists and is not a page of readcache: give another file, or remove it")
    try:
        handle, draft = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".readcache-", suffix=".html")
        try:
            with open(handle, "w", encoding="utf-8", newline="\n") as file:
                make(file.write)
            os.chmod(draft, MODE)
            os.replace(draft, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft)
            raise
    except OSError as error:
        raise ReadcacheError(f"cannot write {output}: {error.strerror or error}") from error
    say(f"{output}: {os.path.getsize(target) / 1e3:,.0f} kB, readable only by you{note}")


def _is_page(path: str) -> bool:
    from readcache.report.page.frame import BEGINNING

    with open(path, "rb") as file:
        return file.read(len(BEGINNING)) in (b"", BEGINNING.encode())
