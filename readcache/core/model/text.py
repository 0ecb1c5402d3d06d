"""Text as the reader sees it: lines, the line numbers before them, digests.

Rules:
- A line ends only at "\\n". "\\r", form feeds and Unicode separators belong to the line, as for `cat`.
- Text without a final newline still has a last line. The empty text has no line.
- A *numbered* line is optional blanks, digits, a separator, and the line's own text (its *body*). Agents meet these
  separators: `cat -n` and `nl` (tab), Claude Code's read ("→" or tab), SWE-agent's windows (":"), OpenHands ("| "),
  opencode (": "), grep -n (":" and, for context lines, "-"). A separator with `NUMBER` in it also contains the text
  before the number: `[12] x` has the separator "[{n}] ".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import xxhash

# If this many non-blank lines are the same, they are lines of the same file, or in the same form.
SAME_LINES = 2
ELISION = "[…]"  # a line between the parts that a truncated reply is known to keep

NUMBER = "{n}"  # in a separator: the position of the number, if the tool writes something before it ("[{n}] ")
_ROW = re.compile(r"[ \t]*(?:([^\W\d_]{1,4} ?|[^\w\s])[ \t]*)?(\d{1,9})(\t| ?[^\w\s])")


def split_lines(text: str) -> list[str]:
    """Return the lines of `text`, without their newlines."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def count_lines(text: str) -> int:
    """Return the number of lines that `split_lines` would return."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


GREP = ":-"  # the separator of `grep -n`: ":" after the number of a match, "-" after the number of a context line
DIFF = "+ "  # no number: a diff's "+" or blank; in a separator, the file's path follows it if the diff names one


@lru_cache(maxsize=64)
def _pattern(sep: str) -> re.Pattern[str]:
    before, _, after = sep.rpartition(NUMBER)
    lead = f"{re.escape(before)}[ \\t]*" if before else ""
    return re.compile(rf"[ \t]*{lead}(\d{{1,9}}){f'[{GREP}]' if after == GREP else re.escape(after)}")


def split_number(line: str, sep: str) -> tuple[int, str] | None:
    """Return (number, body) of a line that is numbered with `sep`; None if the line is not numbered that way."""
    found = _pattern(sep).match(line)
    return None if found is None else (int(found[1]), line[found.end() :])


def bodies(lines: Sequence[str], sep: str | None) -> list[str]:
    """Return the lines without their numbers. A line without a number stays whole."""
    if sep is None:
        return list(lines)
    if sep.startswith(DIFF):
        return [line[1:] for line in lines]
    match = _pattern(sep).match
    return [line if (found := match(line)) is None else line[found.end() :] for line in lines]


def shows_numbers(sep: str | None) -> bool:
    """Return True if lines with this separator have their numbers before them."""
    return sep is not None and not sep.startswith(DIFF)


def is_doubtful(sep: str | None) -> bool:
    """Return True if a blank after the number may belong to this separator or to the line: `12: x` is the line "x" or "
    x"."""
    return sep is not None and sep not in ("\t", "→", GREP) and not sep.startswith(DIFF)


def path_in(sep: str | None) -> str:
    """Return the path that a diff names for its lines; "" if there is none."""
    return sep[len(DIFF) :] if sep is not None and sep.startswith(DIFF) else ""


def find_separator(lines: Sequence[str]) -> str | None:
    """Return the separator with which most of `lines` are numbered. Return None if at most half are numbered, or if the
    separator is not certain."""
    candidates = find_separators(lines)
    return candidates[0] if len(candidates) == 1 else None


def find_separators(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the separators with which most of `lines` are probably numbered; see `Numbering.likely`."""
    numbering = find_numbering(lines)
    return () if numbering is None else numbering.likely


class Numbering(NamedTuple):
    """The way in which most of some lines are numbered, judged only from these lines.

    `possible`: the separators that no line contradicts, the longest first. `likely`: the possible separators that
    remain once the habits of known tools are considered; several if nothing distinguishes them. In `likely`, "" means
    no numbers at all. `last`: the number of the last numbered line.
    """

    possible: tuple[str, ...]
    likely: tuple[str, ...]
    last: int


def find_numbering(lines: Sequence[str]) -> Numbering | None:
    """Return the way in which most of `lines` are numbered; None if most are not numbered.

    Numbers rise one by one, with the same text before and after each. `10:    x` is a line that begins with four blanks
    (SWE-agent) or with three (opencode). A line without a blank after the number, or an empty line, decides which. `1.
    x` is a number or belongs to the file's own list. An empty line, or right-aligned numbers, decide which.
    """
    rests: dict[tuple[str, str], list[str]] = {}
    lasts: dict[tuple[str, str], int] = {}
    ends: dict[int, set[int]] = {}  # number of digits -> the columns where such numbers end
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
    if lead or mark not in (":", "|", "."):  # no known tool: only comparing the bytes can tell
        likely = (*possible, "")
    elif is_wide and ((has_zeros and mark == "|") or (is_aligned and mark == ".")):
        likely = possible[:1]  # no tool is known to write `00012|x`; no list is right-aligned
    else:
        likely = _likely_of(mark, rests[form])
    return Numbering(possible, likely, lasts[form])


def _likely_of(mark: str, rests: Sequence[str]) -> tuple[str, ...]:
    """Return the likely separators that begin with `mark`; `rests` are the texts after it. The last line decides
    nothing, because blanks at the end of an output are often removed."""
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
    """Return 32 hex digits of xxh3_128 over the UTF-8 bytes (distinct for lone surrogates). Logs and stores use the
    digest to find a text. It proves nothing, because it is easy to make two texts with one digest: compare the
    bytes."""
    return xxhash.xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass"))


SESSION_DIGITS = 4  # a tag begins with these; markers of the first builds have no others
AGAIN = "~"  # in the name of a reader that gets the same list as an earlier one; its markers must be the same, too


def session_tag(session_id: str, agent_id: str = "main") -> str:
    """Return the six hex digits that identify this reader's markers: four of the session, and two of the reader."""
    session, agent_id = f"{_hash(session_id) & 0xFFFF:0{SESSION_DIGITS}x}", agent_id.partition(AGAIN)[0]
    return session + f"{_hash(f'{session_id} {agent_id}') & 0xFF:02x}"


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


def digest_lines(lines: Sequence[str]) -> str:
    """Return the digest of the text that consists of these lines, each with a newline."""
    return digest("\n".join(lines) + "\n")


def is_blank(line: str) -> bool:
    """Return True if the line is too short to identify a position: fewer than 4 characters without the white space
    around it, like closing braces and blank lines. The upper bound of the replay also uses 4."""
    return len(line.strip()) < 4


def printable(text: str) -> str:
    """Return the text on one line, with "?" for each character that cannot be printed."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
