"""Text as the reader sees it: lines, line numbers in front of them, digests.

Rules:
- A line ends at "\\n" and nothing else: "\\r", form feeds and Unicode separators are part of a line, as for `cat`.
- Text without a final newline has a last line all the same; the empty text has none.
- A *numbered* line is optional blanks, digits, a separator, and the line's own text (its *body*). The separators that
  agents meet: `cat -n` and `nl` (tab), Claude Code's read ("→" or tab), SWE-agent's windows (":"), OpenHands ("| "),
  grep -n (":" and, for context lines, "-").
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import xxhash

ELISION = "[…]"  # a line between the stretches that a clipped reply is known to keep

_NUMBER = re.compile(r"[ \t]*(\d{1,9})")
_NUMBERED = re.compile(r"[ \t]*(\d{1,9})([\t→:|.])")


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
DIFF = "+ "  # no number: a diff's "+" or blank; the path of the file stands behind it, if the diff names one


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
    """The lines without their numbers; a line without a number stays whole."""
    if sep is None:
        return list(lines)
    if sep.startswith(DIFF):
        return [line[1:] for line in lines]
    return [line if (pair := split_number(line, sep)) is None else pair[1] for line in lines]


def shows_numbers(sep: str | None) -> bool:
    """True if what stands in front of lines is their numbers."""
    return sep is not None and not sep.startswith(DIFF)


def path_in(sep: str | None) -> str:
    """The path above the lines in a diff; empty if there is none."""
    return sep[len(DIFF) :] if sep is not None and sep.startswith(DIFF) else ""


def find_separator(lines: Sequence[str]) -> str | None:
    """The separator with which most of `lines` are numbered, or None when fewer than half are, or it is not certain."""
    candidates = find_separators(lines)
    return candidates[0] if len(candidates) == 1 else None


def find_separators(lines: Sequence[str]) -> tuple[str, ...]:
    """The separators with which most of `lines` may be numbered: none, one, or several where nothing tells them apart.

    Numbers rise one by one. `10:    x` is a line that begins with four blanks (SWE-agent) or with three (opencode):
    what tells is a line without a blank after the number, or an empty line. `1. x` is a number or the file's own list:
    what tells is an empty line, or that the numbers are right-aligned. "" stands for no numbers at all.
    """
    rests: dict[str, list[str]] = {}
    ends: dict[int, set[int]] = {}  # where numbers of so many digits end
    number, has_zeros = -1, False
    for line in lines:
        found = _NUMBERED.match(line)
        if found is None:
            continue
        if int(found[1]) == number + 1 or number < 0:
            rests.setdefault(found[2], []).append(line[found.end() :])
            ends.setdefault(len(found[1]), set()).add(found.end(1))
            has_zeros |= len(found[1]) > 1 and found[1][0] == "0"
        number = int(found[1])
    mark = max(rests, key=lambda sep: len(rests[sep]), default="")
    if not mark or 2 * len(rests[mark]) <= len(lines):
        return ()
    if has_zeros and mark == "|" and all(not rest or rest[0] == " " for rest in rests[mark]):
        return ("| ",)  # no tool is known to write `00012|x`
    if mark == "." and len(ends) > 1 and len(set().union(*ends.values())) == 1:
        return (". ",)  # right-aligned, as no list is
    return _separators_of(mark, rests[mark])


def _separators_of(mark: str, rests: Sequence[str]) -> tuple[str, ...]:
    """The separators that begin with `mark`, when `rests` follow it in the lines. The last line tells nothing: blanks
    at the end of an output are often taken off."""
    if mark in "\t→":
        return (mark,)
    wide = mark + " "
    said = [rest for rest in rests if rest]
    if mark == ".":
        if not all(rest.startswith(" ") for rest in said):
            return ()
        return (wide,) if "" in rests[:-1] or " " in rests[:-1] else (wide, "")
    if not all(rest.startswith(" ") for rest in said):
        return (mark,)
    if "" not in rests[:-1]:
        return (wide,) if " " in rests[:-1] else (wide, mark)
    shallow = any(not rest.startswith("  ") for rest in said)
    return (wide, mark) if shallow or not said else (mark,)


def digest(text: str) -> str:
    """32 hex digits of xxh3_128 over the UTF-8 bytes (lone surrogates kept apart): where to look for a text in logs and
    stores. It proves nothing: two texts of one digest are easily made, so compare the bytes."""
    return xxhash.xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass"))


def session_tag(session_id: str) -> str:
    """Four hex digits that mark this session's markers."""
    return f"{xxhash.xxh3_64_intdigest(session_id.encode('utf-8', 'surrogatepass')) & 0xFFFF:04x}"


def digest_lines(lines: Sequence[str]) -> str:
    """The digest of the text made of these lines, each with a newline."""
    return digest("\n".join(lines) + "\n")


def is_blank(line: str) -> bool:
    """Too little to recognise a place by: closing braces, blank lines (the bound of the replay uses the same 4)."""
    return len(line.strip()) < 4
