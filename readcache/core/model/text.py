"""Text as the reader sees it: lines, line numbers in front of them, digests.

Rules:
- A line ends at "\\n" and nothing else: "\\r", form feeds and Unicode separators are part of a line, as for `cat`.
- Text without a final newline has a last line all the same; the empty text has none.
- A *numbered* line is optional blanks, digits, a separator, and the line's own text (its *body*). The separators that
  agents meet: `cat -n` and `nl` (tab), Claude Code's read ("→" or tab), SWE-agent's windows (":"), OpenHands ("| "),
  opencode (": "), grep -n (":" and, for context lines, "-"). A separator with `NUMBER` in it also has what stands
  before the number: "[{n}] " is that of `[12] x`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import xxhash

ELISION = "[…]"  # a line between the stretches that a clipped reply is known to keep

NUMBER = "{n}"  # in a separator: the place of the number, if the tool writes something before it ("[{n}] ")
_ROW = re.compile(r"[ \t]*(?:([^\W\d_]{1,4} ?|[^\w\s])[ \t]*)?(\d{1,9})(\t| ?[^\w\s])")


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


@lru_cache(maxsize=64)
def _pattern(sep: str) -> re.Pattern[str]:
    before, _, after = sep.rpartition(NUMBER)
    lead = f"{re.escape(before)}[ \\t]*" if before else ""
    return re.compile(rf"[ \t]*{lead}(\d{{1,9}}){f'[{GREP}]' if after == GREP else re.escape(after)}")


def split_number(line: str, sep: str) -> tuple[int, str] | None:
    """(number, body) of a line numbered with `sep`, or None when it is not such a line."""
    found = _pattern(sep).match(line)
    return None if found is None else (int(found[1]), line[found.end() :])


def bodies(lines: Sequence[str], sep: str | None) -> list[str]:
    """The lines without their numbers; a line without a number stays whole."""
    if sep is None:
        return list(lines)
    if sep.startswith(DIFF):
        return [line[1:] for line in lines]
    match = _pattern(sep).match
    return [line if (found := match(line)) is None else line[found.end() :] for line in lines]


def shows_numbers(sep: str | None) -> bool:
    """True if what stands in front of lines is their numbers."""
    return sep is not None and not sep.startswith(DIFF)


def is_doubtful(sep: str | None) -> bool:
    """True if a blank at the beginning of the lines may be taken for a part of this separator, or the other way round:
    `12: x` is the line "x" or " x"."""
    return sep is not None and sep not in ("\t", "→", GREP) and not sep.startswith(DIFF)


def path_in(sep: str | None) -> str:
    """The path above the lines in a diff; empty if there is none."""
    return sep[len(DIFF) :] if sep is not None and sep.startswith(DIFF) else ""


def find_separator(lines: Sequence[str]) -> str | None:
    """The separator with which most of `lines` are numbered, or None when fewer than half are, or it is not certain."""
    candidates = find_separators(lines)
    return candidates[0] if len(candidates) == 1 else None


def find_separators(lines: Sequence[str]) -> tuple[str, ...]:
    """The separators with which most of `lines` are probably numbered; see `Numbering.likely`."""
    numbering = find_numbering(lines)
    return () if numbering is None else numbering.likely


class Numbering(NamedTuple):
    """How most of some lines are numbered, as far as these lines tell.

    `possible`: the separators that no line contradicts, the longest first. `likely`: those that are left by what tools
    are known to write; several if nothing tells them apart. There "" stands for no numbers at all. `last`: the number
    of the last line.
    """

    possible: tuple[str, ...]
    likely: tuple[str, ...]
    last: int


def find_numbering(lines: Sequence[str]) -> Numbering | None:
    """Return how most of `lines` are numbered; None if most are not.

    Numbers rise one by one, with the same text before and after each. `10:    x` is a line that begins with four blanks
    (SWE-agent) or with three (opencode): what tells is a line without a blank after the number, or an empty line.
    `1. x` is a number or the file's own list: what tells is an empty line, or that the numbers are right-aligned.
    """
    rests: dict[tuple[str, str], list[str]] = {}
    lasts: dict[tuple[str, str], int] = {}
    ends: dict[int, set[int]] = {}  # where numbers of so many digits end
    number, has_zeros = -1, False
    for line in lines:
        found = _ROW.match(line)
        if found is None:
            continue
        before, number = number, int(found[2])
        if number == before + 1 or before < 0:
            form = found[1] or "", found[3]
            rests.setdefault(form, []).append(line[found.end() :])
            lasts[form] = number
            ends.setdefault(len(found[2]), set()).add(found.end(2))
            has_zeros |= found[2][0] == "0" and number > 0
    form = max(rests, key=lambda form: len(rests[form]), default=("", ""))
    if form not in rests or 2 * len(rests[form]) <= len(lines):
        return None
    lead, mark = form
    if not lead and mark in ("\t", "→"):  # no tool is known to write a blank after these
        return Numbering((mark,), (mark,), lasts[form])
    narrow = f"{lead}{NUMBER}{mark}" if lead else mark
    is_wide = all(rest.startswith(" ") for rest in rests[form] if rest)
    possible = ((f"{narrow} ",) if is_wide else ()) + ((narrow,) if mark != "." else ())
    is_aligned = len(ends) > 1 and len(set().union(*ends.values())) == 1
    if lead or mark not in (":", "|", "."):  # no tool that we know: the bytes have to tell
        likely = (*possible, "")
    elif is_wide and ((has_zeros and mark == "|") or (is_aligned and mark == ".")):
        likely = possible[:1]  # no tool is known to write `00012|x`; no list is right-aligned
    else:
        likely = _likely_of(mark, rests[form])
    return Numbering(possible, likely, lasts[form])


def _likely_of(mark: str, rests: Sequence[str]) -> tuple[str, ...]:
    """The separators that begin with `mark`, when `rests` follow it in the lines. The last line tells nothing: blanks
    at the end of an output are often taken off."""
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
