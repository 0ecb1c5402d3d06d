"""Texts of files whose lines are all different, so that a test can tell by a line where it came from; and files that
come from another process."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

WATCHDOG = 600  # seconds until what hangs is ended; what works takes two at most, on any machine
Result = TypeVar("Result")

LINES = [f"line number {n} says something that no other line says" for n in range(1, 201)]


def text(first: int = 1, last: int = 60, of: str = "line", **changed: str) -> str:
    """Lines `first` to `last` of a file; `of` makes it another file, `l7="…"` replaces line 7."""
    lines = (changed.get(f"l{n}", LINES[n - 1].replace("line", of, 1)) for n in range(first, last + 1))
    return "".join(line + "\n" for line in lines)


def with_numbers(first: int = 1, last: int = 60, *, form: str = "{:6}\t") -> str:
    """The same with line numbers, as `cat -n` prints them or as `form` says."""
    return "".join(f"{form.format(n)}{LINES[n - 1]}\n" for n in range(first, last + 1))


TEXT = text()


def in_time_enough(use: Callable[[float], Result], is_enough: Callable[[Result], bool]) -> Result:
    """What `use` gives with the shortest timeout, in seconds, that is enough on this machine; with the longest one, if
    none is."""
    for timeout in (0.3, 1.0, 4.0, 16.0):
        result = use(timeout)
        if is_enough(result):
            break
    return result


def wait_for(path: Path) -> None:
    """Until the file is there."""
    wait_until(path.exists, str(path))


def wait_until(is_true: Callable[[], object], what: str = "it") -> None:
    """Until it is so."""
    deadline = time.monotonic() + WATCHDOG
    while not is_true():
        assert time.monotonic() < deadline, f"{what} never came"
        time.sleep(0.01)
