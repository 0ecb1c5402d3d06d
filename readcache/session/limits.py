"""Limit what one reply shows: the first lines of a text, and one line that says what is not shown.

That line is a host's frame around the output, and never content: no marker names it as a source.
"""

from __future__ import annotations

from readcache.core.judging.marker import name_of
from readcache.core.model.errors import UsageError
from readcache.core.model.text import count_lines
from readcache.core.model.tool_call import Framing


def first_lines(text: str, path: str, start: int, most: int | None) -> tuple[str, Framing | None]:
    """Return the first `most` lines of a read with the line that says where to read on, and the frame for that line.
    Return the text and None if all of it is shown. `start`: the number of the first line in the file. Raise UsageError
    unless `most` is above 0."""
    if most is None or (_checked("max_lines", most) >= count_lines(text)):
        return text, None
    last = start + most - 1
    left = f"lines {last + 1}-{start + count_lines(text) - 1} of {name_of(path)}"
    body = "".join(f"{line}\n" for line in text.split("\n", most)[:most])
    return _with_note(body, f"{left} are not shown; to read on, start at line {last + 1}")


def first_chars(text: str, most: int | None) -> tuple[str, Framing | None]:
    """Return the first whole lines of an output, at most `most` characters, with the line that says how much is not
    shown, and the frame for that line. Only if the first line is longer, a part of it is shown. Return the text and
    None if all of it is shown. Raise UsageError unless `most` is above 0."""
    if most is None or (_checked("max_chars", most) >= len(text)):
        return text, None
    body = text[: text.rfind("\n", 0, most) + 1 or most]
    lines, chars = count_lines(text[len(body) :]), len(text) - len(body)
    left = f"{lines:,} more line{'s' if lines != 1 else ''} of output, {chars:,} characters, are not shown"
    return _with_note(body, f"{left}; to see them, send the output to a file and read a part of it")


def _checked(name: str, most: int) -> int:
    if most < 1:
        raise UsageError(f"{name}={most}: give a number above 0")
    return most


def _with_note(body: str, note: str) -> tuple[str, Framing]:
    tail = f"{'' if body.endswith(chr(10)) else chr(10)}[{note}]\n"
    return body + tail, lambda _: ("", body, tail)
