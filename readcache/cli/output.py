"""What the command line prints and writes for people: lines, tables, progress, pages.

What names a file, a command or a session may hold control characters: they are shown, not sent.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TextIO

from readcache.model.errors import ReadcacheError, UsageError

NARROWEST = 40  # columns, in which tables and help still fit
NO_TERMINAL = 1_000_000  # columns of a pipe: a script wants whole lines
# What others may do with a page: it holds the contents of files, or the names of sessions.
MODE = 0o600


def say(line: str) -> None:
    """One line on stdout."""
    _print(line, sys.stdout)


def warn(line: str) -> None:
    """One line on stderr, which says who speaks; none where stderr is closed."""
    _print("readcache: " + " ".join(line.split()), sys.stderr)


def is_agreed(question: str, otherwise: str) -> bool:
    """Return True if the user answers yes. Raise UsageError, which says `otherwise`, if stdin is no terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(f"nobody can be asked here: {otherwise}")
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:  # Ctrl-D
        return False


def one_line(text: str) -> str:
    """Newlines and other control characters as `\\n` and the like."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def width(default: int = 80) -> int:
    """The terminal's columns ($COLUMNS if set), or `default` if stdout is not a terminal; fewer than `NARROWEST` count
    as that many."""
    import shutil

    columns = shutil.get_terminal_size((default, 24)).columns
    return max(columns, NARROWEST) if columns else columns  # 0: a caller's own default


def say_row(line: str, columns: int, indent: int = 2) -> None:
    """Print a line of a table on stdout. Wrap it to so many columns, and indent the rest."""
    import textwrap

    hanging = " " * (indent if columns >= 2 * indent else 2)
    for part in textwrap.wrap(one_line(line), max(columns, 20), subsequent_indent=hanging) or [""]:
        say(part)


def in_columns(rows: Iterable[tuple[str, str]], *, indent: int = 0) -> str:
    """Rows of a word and its meaning, as wide as the terminal, less an indent that is added later."""
    import textwrap

    rows = [*rows]
    left = max(len(word) for word, _ in rows) + 2
    paragraph = textwrap.TextWrapper(width() - indent, subsequent_indent=" " * left, break_on_hyphens=False)
    return "\n".join(paragraph.fill(f"{word:{left}}{text}") for word, text in rows)


def _print(line: str, stream: TextIO | None) -> None:
    if stream is None:  # it was closed when we were started
        return
    encoding = stream.encoding or "utf-8"
    print(one_line(line).encode(encoding, "backslashreplace").decode(encoding), file=stream)


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
    from readcache.report.page.html import BEGINNING

    with open(path, "rb") as file:
        return file.read(len(BEGINNING)) in (b"", BEGINNING.encode())
