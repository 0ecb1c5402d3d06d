"""Print and write for people: lines, tables, progress, pages.

Names of files, commands and sessions may contain control characters. They are escaped.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO

from readcache.core.model.errors import ReadcacheError, UsageError

NARROWEST = 40  # columns; tables and help still fit
NO_TERMINAL = 1_000_000  # columns of a pipe: a script needs whole lines
# Only the owner may read a page, because it contains the contents of files, or the names of sessions.
MODE = 0o600
_NUMBER = re.compile(r"-?\$?[\d.,]+k?( %)?( \(.*\))?|n/a\*?|too few")
Cells = Sequence[str | int]


def say(line: str) -> None:
    """Print one line on stdout."""
    _print(line, sys.stdout)


def warn(line: str) -> None:
    """Print one line on stderr that starts with "readcache: ". Print nothing if stderr is closed."""
    _print("readcache: " + " ".join(line.split()), sys.stderr)


def is_agreed(question: str, otherwise: str) -> bool:
    """Return True if the user answers yes. Raise UsageError if stdin is not a terminal. `otherwise`: the text of that
    error, which says what to do instead."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(f"nobody can be asked here: {otherwise}")
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:  # Ctrl-D
        return False


def clock(at: float) -> str:
    """Return the local time as text. `at`: seconds since the epoch."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def one_line(text: str) -> str:
    """Return the text as one line, with newlines and other control characters escaped, such as `\\n`."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def width(default: int = 80) -> int:
    """Return the terminal's width in columns ($COLUMNS if set), or `default` if stdout is not a terminal. Return at
    least `NARROWEST`, except for a default of 0."""
    import shutil

    columns = shutil.get_terminal_size((default, 24)).columns
    return max(columns, NARROWEST) if columns else 0


def say_row(line: str, columns: int, indent: int = 2) -> None:
    """Print a line of a table on stdout. Wrap it to `columns`, and indent the continuation lines by `indent`
    columns."""
    import textwrap

    hanging = " " * (indent if columns >= 2 * indent else 2)
    for part in textwrap.wrap(one_line(line), max(columns, 20), subsequent_indent=hanging) or [""]:
        say(part)


def print_parts(parts: Iterable[str | Sequence[Cells]], columns: int) -> None:
    """Print a report on stdout: lines of text, and tables whose first row is the heading."""
    for part in parts:
        if isinstance(part, str):
            say_row(part, columns)
        else:
            print_table(part[1:], columns, heading=part[0])


def print_table(rows: Iterable[Cells], columns: int, *, heading: Cells = ()) -> None:
    """Print a table on stdout. rich draws it on a terminal if it is installed; otherwise it is plain text."""
    cells = [*filter(None, [heading]), *rows]
    if not (cells and _draw_table(cells, has_heading=bool(heading))):
        for line, indent in table_lines(cells, columns):
            say_row(line, columns, indent)


def table_lines(rows: Sequence[Cells], columns: int) -> Iterator[tuple[str, int]]:
    """Yield for each row its line of text, and the column in which the last cell begins.

    Cells are two blanks apart, or one blank if the table would be wider than `columns`. A line may still be longer.
    """
    texts, are_numbers = _texts_of(rows)
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    gap = "  " if sum(widths) + 2 * len(widths[1:]) <= columns else " "
    indent = sum(widths[:-1]) + len(gap) * len(widths[1:])
    for row in texts:
        padded = (
            text.rjust(most) if is_right else text.ljust(most)
            for text, most, is_right in zip(row, widths, are_numbers, strict=True)
        )
        yield gap.join(padded).rstrip(), indent


def _texts_of(rows: Sequence[Cells]) -> tuple[list[list[str]], list[bool]]:
    """Return the cells as text, and True for each column of numbers, which is aligned to the right. The first column
    always counts as names."""
    texts = [[f"{cell:,}" if isinstance(cell, int) else one_line(cell) for cell in row] for row in rows]
    columns = zip(*(texts[1:] or texts), strict=True)  # the first row may be a heading
    are_numbers = [all(text == "" or _NUMBER.fullmatch(text) for text in column) for column in columns]
    return texts, [False, *are_numbers[1:]]


def _draw_table(rows: Sequence[Cells], *, has_heading: bool) -> bool:
    """Draw a table with rich. Return False, and print nothing, if rich is not installed or stdout is not a terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return False
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    texts, are_numbers = _texts_of(rows)
    table = Table(box=None, pad_edge=False, show_header=has_heading, header_style="bold")
    for head, is_right in zip(texts[0], are_numbers, strict=True):
        table.add_column(Text(head), justify="right" if is_right else "left", overflow="fold")
    for row in texts[has_heading:]:
        table.add_row(*map(Text, row))
    Console(width=width()).print(table)
    return True


@contextmanager
def progress(total: int) -> Iterator[Callable[[int], object]]:
    """Yield a function that takes the number of further bytes that are done.

    On a terminal, it shows on stderr which share of `total` bytes is done: as a bar if rich is installed, otherwise in
    percent.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn
    except ImportError:
        with _percent(total) as advance:
            yield advance
        return
    shown = BarColumn(), DownloadColumn(), TimeRemainingColumn()
    # Without a thread that refreshes the bar, because the caller may fork.
    with Progress(*shown, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=total)

        def advance(more: int) -> None:
            bar.update(task, advance=more, refresh=True)

        yield advance


@contextmanager
def _percent(total: int) -> Iterator[Callable[[int], object]]:
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        print(f"\r{100 * done // max(total, 1):3} %", end="", file=sys.stderr, flush=True)

    yield advance
    print("\r     \r", end="", file=sys.stderr, flush=True)


def in_columns(rows: Iterable[tuple[str, str]], *, indent: int = 0) -> str:
    """Return rows of a word and its meaning, as wide as the terminal minus `indent`, which the caller adds later."""
    import textwrap

    rows = [*rows]
    left = max(len(word) for word, _ in rows) + 2
    paragraph = textwrap.TextWrapper(width() - indent, subsequent_indent=" " * left, break_on_hyphens=False)
    return "\n".join(paragraph.fill(f"{word:{left}}{text}") for word, text in rows)


def _print(line: str, stream: TextIO | None) -> None:
    if stream is None:  # it was closed when this process started
        return
    encoding = stream.encoding or "utf-8"
    print(one_line(line).encode(encoding, "backslashreplace").decode(encoding), file=stream)


def write_html(output: str, page: Iterable[str], note: str = "") -> None:
    """Write the parts of a page to the file `output`, and print a line about it. For `-`, write to stdout.

    The file is written completely or not at all, and only this user can read it. `note`: the end of the printed line.
    Raise UsageError if the file exists and is not a page of readcache. Raise ReadcacheError if it cannot be written.
    """
    if output == "-":
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # the page declares this encoding
        sys.stdout.writelines(page)
        return
    import tempfile

    target = os.path.realpath(output)
    if os.path.lexists(target) and not os.path.isfile(target):
        raise UsageError(f"{output} is not a file that can be written: give another one, or - for stdout")
    if os.path.exists(target) and not _is_page(target):
        raise UsageError(f"{output} exists and is not a page of readcache: give another file, or remove it")
    try:
        handle, draft = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".readcache-", suffix=".html")
        try:
            with open(handle, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(page)
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
