"""Text of an output that comes from no file: landmarks, complaints of programs, notices of a truncation, and JSON in
which a tool returns its result.

Landmarks are texts that a command is known to print (`echo ---`). They are the borders between its reads. Complaints
and notices are recognised by their form only. If a file contains such lines, fewer of its lines get numbers. No
additional line is omitted because of them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from posixpath import splitext

from readcache.core.model.claims import Claim, Literal
from readcache.core.model.text import split_lines

# If the texts have more different first lines than this, they are not looked for at the ends of lines.
MOST_JOINED = 64
# Comparisons for each line of the output. After that, the remaining texts are skipped. In the recordings, no output
# needs more than two.
MOST_COMPARED = 100


# Files that may contain a JSON object. A file without a suffix (`.babelrc`) may, too.
JSON_SUFFIXES = ("", ".json", ".jsonl", ".ipynb", ".lock", ".map")


@dataclass(frozen=True, slots=True)
class Landmark:
    """Output lines low to high - 1 that claim number `claim` printed.

    `joined`: True if the text before had no final newline, so that the first line begins with the end of that text.
    """

    claim: int
    low: int
    high: int
    joined: bool


def find_landmarks(claims: Sequence[Claim], lines: Sequence[str]) -> list[Landmark]:
    """Return the texts that occur at only one position that their order allows.

    The search from above and the search from below must find the same position. If a file contains such a line as well,
    the position is uncertain, and the text is not returned.
    """
    texts = {k: tuple(split_lines(c.text)) for k, c in enumerate(claims) if isinstance(c, Literal) and c.text.strip()}
    if not texts:
        return []
    positions = _positions(list(texts.values()), lines)
    first: dict[int, int] = {}
    at = 0
    for k, text in texts.items():
        next_position = bisect_left(positions[text], at)
        if next_position < len(positions[text]):
            first[k] = positions[text][next_position]
            at = first[k] + len(text)
    out: list[Landmark] = []
    end = len(lines)
    for k, text in reversed(texts.items()):
        last_position = bisect_left(positions[text], end - len(text) + 1) - 1
        if last_position >= 0:
            end = positions[text][last_position]
            if first.get(k) == end:
                out.append(Landmark(k, end, end + len(text), joined=lines[end] != text[0]))
    return out[::-1]


def _positions(texts: Sequence[tuple[str, ...]], lines: Sequence[str]) -> dict[tuple[str, ...], list[int]]:
    """Return, for each text, the indexes of the lines at which it begins, ascending.

    It may be lines of its own, or come after the end of a line that had no newline.
    """
    solid = {text: next(n for n, line in enumerate(text) if line.strip()) for text in texts}
    at: dict[str, list[int]] = {text[n]: [] for text, n in solid.items()}
    beginnings = tuple({text[0] for text, n in solid.items() if n == 0})
    joined: dict[str, list[int]] = {line: [] for line in beginnings}
    for k, line in enumerate(lines):
        if line in at:
            at[line].append(k)
        elif len(beginnings) <= MOST_JOINED and line.endswith(beginnings):
            for beginning in beginnings:
                if line.endswith(beginning):
                    joined[beginning].append(k)
    out: dict[tuple[str, ...], list[int]] = {}
    left = MOST_COMPARED * len(lines)
    for text, n in solid.items():
        starts = [k - n for k in at[text[n]] if k >= n] + (joined[text[0]] if n == 0 else [])
        left -= len(starts) * len(text)
        out[text] = sorted(k for k in starts if _ends_with(lines[k : k + len(text)], text)) if left >= 0 else []
    return out


def _ends_with(lines: Sequence[str], text: tuple[str, ...]) -> bool:
    return len(lines) == len(text) and lines[0].endswith(text[0]) and tuple(lines[1:]) == text[1:]


# Characters: no notice or complaint of a tool is a longer line.
_LONGEST = 400

# Error messages of the C library, of shells and of programs.
_STRERRORS = (
    "No such file or directory|Permission denied|Is a directory|Not a directory|Read-only file system"
    "|No space left on device|Disk quota exceeded|Operation not permitted|Operation not supported|File name too long"
    "|Input/output error|Too many open files|Too many levels of symbolic links|Text file busy|File exists"
    "|Directory not empty|Device or resource busy|Stale file handle|Bad file descriptor|Broken pipe|File too large"
    "|Cannot allocate memory|Argument list too long|Connection refused|Connection timed out|Host is down"
    "|No such device or address|Invalid argument|Resource temporarily unavailable|cannot overwrite existing file"
    "|ambiguous redirect|restricted: cannot redirect output|command not found|not found|is a directory"
    "|not a regular file|No such container|Transport endpoint is not connected"
)
_COMPLAINT = re.compile(
    rf".*: (?:{_STRERRORS})(?: \(os error \d+\))?[.;]?\s*$"
    r"|(?:\S*/)?(?:cat|nl|head|tail|sed|[ef]?grep|rg|tee|cp|mv|rm|mkdir|touch|ls|git|bash|sh|dash|zsh): "
    r"(?:can't |cannot |couldn't |could not |unable to |error |invalid |unrecogni[sz]ed |unknown |illegal |missing "
    r"|too few |no matches found|regex parse error|-e expression #\d)"
    r"|fatal: |Try '.*--help' for more information"
    r"|Error response from daemon: |OCI runtime exec failed|Error: No such container"
    r"|(?:bash|sh|dash|zsh): (?:line )?\d+: "
    r"|ssh: |kex_exchange_identification: |Connection to \S+ closed"
)
_TRUNCATED = r"(?:truncated|omitted|clipped|elided)"
_GONE = r"(?:truncated|omitted|clipped|elided|snipped|trimmed|skipped|removed|hidden|left out|not shown|more|remaining)"
_UNIT = r"(?:lines?|characters?|chars?|bytes?|tokens?|words?|[KMkm]?i?B)"
_SAID_FIRST = (
    r"^\W*(?:warning|note|output|response|results?|content|observation|file|the (?:output|file|result|response)"
    r"|command output)\b.{0,100}\b(?:truncated|clipped|too (?:long|large)\b|exceed)"
)
_NOTICE_IN_FRONT = re.compile(_SAID_FIRST, re.IGNORECASE)
_NOTICE = re.compile(
    # a whole line between brackets or dots: "[... 12 lines omitted ...]", "... output truncated ..."
    rf"^\s*(?:[\[(<{{…]|\.\.\.|\*\*\*|---?).*\b{_TRUNCATED}\b(?!.*=[\"'{{]).*(?:[\])>}}….]|\*\*\*|--)\s*$"
    # anywhere, if characters were counted: "con…558 tokens truncated…git", "x... [120 characters truncated] ..."
    rf"|(?:…|\.\.\.|[\[(<])\s*[\[(<]?\s*\+?\d[\d,._]*\s*(?:more )?{_UNIT}\s+(?:more |were |was )?{_GONE}"
    rf"|(?:…|\.\.\.) ?(?:\w+ ){{0,3}}{_TRUNCATED} ?(?:…|\.\.\.)"
    rf"|[\[(<](?:\w+ )?(?:skipped|hid|removed|dropped|cut) \d[\d,._]* {_UNIT}\b"
    rf"|\[\.\.\.[^\]]{{0,120}}\b{_TRUNCATED}\b|\[(?:\w+ )?{_TRUNCATED}\]"
    rf"|<(?:(?:output|response|content|file|text|result|observation)[ _-])?(?:truncated|clipped|elided)\b"
    # at the beginning of a line: "... 120 more lines", "Warning: truncated output (original token count: 10558)"
    rf"|^\s*(?:…|\.\.\.)\s*[\[(]?\+?\d[\d,._]*\s+(?:more\s+)?{_UNIT}\b"
    rf"|{_SAID_FIRST}"
    rf"|^\s*\d[\d,._]*\s+{_UNIT}\s+(?:were |was )?(?:truncated|omitted|clipped|elided|snipped)\s*\.?\s*$",
    re.IGNORECASE,
)
# A notice contains one of these, except in the first lines. Looking for them is ten times as fast as any pattern.
_NOTICE_WORDS = ("runcated", "mitted", "lipped", "lided", " lines")
_FIRST = 3  # lines at the beginning that are checked even without one
# A match begins only at the first digit of a number, because a line may be one number of a million digits.
_COUNTED = re.compile(
    rf"(?<![\d,._])[,._]*\d[\d,._]*\s*{_UNIT}\s+{_TRUNCATED}|<response clipped>|\[\.\.\.", re.IGNORECASE
)


def find_complaints(lines: Sequence[str]) -> list[int]:
    """Return the indexes of the lines in which a program reports a failure: `cat: f: Permission denied`."""
    return [at for at, line in enumerate(lines) if complains(line)]


def complains(line: str) -> bool:
    """Return True if a program reports in this line that it could not do something."""
    return line[:1] not in ("", " ", "\t") and len(line) <= _LONGEST and _COMPLAINT.match(line) is not None


def find_truncations(lines: Sequence[str]) -> list[int]:
    """Return the indexes of the lines that say that a tool or a host truncated something, ascending."""
    text = "\n".join(lines)
    words = [word for word in _NOTICE_WORDS if word in text]
    found = [at for at, line in enumerate(lines[:_FIRST]) if _NOTICE_IN_FRONT.match(line)]
    if words:
        found += [at for at, line in enumerate(lines) if any(word in line for word in words) and _is_notice(line)]
    return sorted(set(found))


def _is_notice(line: str) -> bool:
    if len(line) <= _LONGEST:
        return _NOTICE.search(line) is not None
    # a line that was truncated in its middle may be long on either side of the notice
    around = (line[max(0, found.start() - 100) : found.end() + 100] for found in _COUNTED.finditer(line))
    return any(_NOTICE.search(part) for part in around)


def is_tool_json(lines: Sequence[str], keys: Collection[str]) -> bool:
    """Return True if an output is a JSON object in which a tool returns text, and not lines of the files `keys`.

    It is one if none of these files may contain JSON, or if one of its values is a text of several lines.
    """
    if not (lines and lines[0].startswith("{") and lines[-1].rstrip().endswith("}")):
        return False
    try:
        given = json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return False
    has_text = any(isinstance(value, str) and "\n" in value for value in given.values())
    return has_text or not any(splitext(key)[1] in JSON_SUFFIXES for key in keys)
