"""Text as the reader sees it: lines, line numbers in front of them, digests.

Rules:
- A line ends at "\\n" and nothing else: "\\r", form feeds and Unicode separators are part of a line, as for `cat`.
- Text without a final newline has a last line all the same; the empty text has none.
- A *numbered* line is optional blanks, digits, a separator, and the line's own text (its *body*).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import xxhash

# What stands between the number and the line in the forms that agents meet: `cat -n` and `nl` (tab), Claude Code's
# read ("→" or tab), SWE-agent's windows (":"), OpenHands ("| "), grep -n (":" and, for context lines, "-").
SEPARATORS = ("\t", "→", ": ", "| ", ". ", ":", "|")

_NUMBER = re.compile(r"[ \t]*(\d{1,9})")


def split_lines(text: str) -> list[str]:
    """The lines of `text`, without their newlines."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def count_lines(text: str) -> int:
    """How many lines `split_lines` would give."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


GREP = ":-"  # the separator of `grep -n`: ":" after the number of a match, "-" after that of a context line


def split_number(line: str, sep: str) -> tuple[int, str] | None:
    """(number, body) of a line numbered with `sep`, or None when it is not such a line."""
    found = _NUMBER.match(line)
    if found is None:
        return None
    end = found.end()
    if sep == GREP:
        return (int(found.group(1)), line[end + 1 :]) if line[end : end + 1] in (":", "-") else None
    if line.startswith(sep, end):
        return int(found.group(1)), line[end + len(sep) :]
    return None


def bodies(lines: Sequence[str], sep: str | None) -> list[str]:
    """The lines without the numbers in front of them; a line that has none stays whole."""
    if sep is None:
        return list(lines)
    return [line if (pair := split_number(line, sep)) is None else pair[1] for line in lines]


def find_separator(lines: Sequence[str]) -> str | None:
    """The separator with which most of `lines` are numbered, or None when fewer than half are."""
    best, most = None, len(lines) // 2
    for sep in SEPARATORS:
        hits = sum(split_number(line, sep) is not None for line in lines)
        if hits > most:
            best, most = sep, hits
    return best


def digest(text: str) -> str:
    """32 hex digits of xxh3_128 over the UTF-8 bytes (lone surrogates kept apart): where to look for a text in logs and
    stores. It proves nothing: two texts of one digest are easily made, so that whoever finds one compares the bytes."""
    return xxhash.xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass"))


def is_blank(line: str) -> bool:
    """Too little to recognise a place by: closing braces, blank lines (the bound of the replay uses the same 4)."""
    return len(line.strip()) < 4
