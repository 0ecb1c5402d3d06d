"""The text that replaces omitted lines.

A marker is one line. It names the omitted lines and their source, and says how to get the bytes all the same.

    [UNCHANGED 7f3a.12: app.py lines 40-80, above in "nl -ba src/app.py"; repeat this call to see]

It is written for a model, which sees no call ids and cannot count calls. So it names a source by the command that
printed it, as the model wrote it. Each session has its own tag, so that a harness can recognise its markers. The number
of the call follows the tag. It makes each marker unique in every message list that is searched for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from readcache.core.model.call import shown_label, split_tool
from readcache.core.model.events import Origin
from readcache.core.model.spans import Span
from readcache.core.model.text import SESSION_DIGITS, printable

FILE_UNCHANGED = "FILE_UNCHANGED"  # the call asked for the whole file, and each of its bytes is as at the source
UNCHANGED = "UNCHANGED"  # these lines are as at the source, and the file is not known to have changed since
LEFT_OUT = "LEFT_OUT"  # the lines are at the source; says nothing about the file
_GONE = "GONE"
PRUNED = "PRUNED"  # first word of the notes that `context.prune` writes

# How to get the bytes all the same. Not used for a command that may do more than read.
ASK_AGAIN = "repeat this call to see"
RECALL = "readcache recall "  # followed by a marker's name: the command that shows the result of that call
OF_OUTPUT = "of that output"  # follows line numbers in a source's text, which are true until the host truncates it

NAME_CHARS = 40  # of a file's name
MOST_SOURCES = 3
SHORTEST_SPAN = 12  # characters of a marker that still look like one: "[UNCHANGED 7"
_ASKS = re.compile(r"; repeat (?:this call )?to see\]")  # the end of most markers; earlier builds wrote two words less
# Limits for a line that seems to contain only markers: characters of one marker, and brackets that may end it. The
# longest marker in the recordings has 494 characters and 3 brackets.
LONGEST = 1_500
MOST_ENDS = 24

_BRACKET = re.compile("]")
_LINE_ENDS = re.compile(r"[\r\n]")
_UNCLEAR = re.compile(r"[\s,;()\"]")
_WORDS = "|".join((FILE_UNCHANGED, UNCHANGED, LEFT_OUT, _GONE, PRUNED))


@dataclass(frozen=True, slots=True)
class Source:
    """A source of omitted lines, as the reader knows it."""

    label: str  # the command or tool; the heading of a restored section
    origin: Origin = Origin.RESULT
    lines: tuple[Span, ...] = ()  # the omitted lines at this source, if there are several sources
    of_output: bool = False  # `lines` are numbers of lines of this output, and the marker names lines of files
    there: str = ""  # the lines at the source, if they differ: "lines 9-39", "a/util.py lines 3-62"
    is_earlier: bool = False  # a later call has the same label
    same_file: bool = False  # the same file as the omitted lines, already named by the marker
    is_whole: bool = False  # it shows all lines of the file
    form: str = ""  # the form of the lines there, if it differs from this output: "without numbers", "within a diff"
    file: str = ""  # the name of the file that a tool read or wrote
    heading: str = ""  # in a restored section: the heading above the lines, if they are not lines of a file


def find_markers(text: str, session_tag: str) -> list[str]:
    """Return the session's markers and notes in `text`. They may be indented, quoted, in a patch or before CRLF."""
    if not may_contain(text, session_tag) or not re.search(_beginning(session_tag), text):
        return []
    lines = _LINE_ENDS.split(text)
    return [marker for line in lines if may_contain(line, session_tag) for marker in _markers_in(line, session_tag)]


def _markers_in(line: str, session_tag: str) -> Iterator[str]:
    """Yield the markers in a line, without overlaps.

    A marker ends with the words that end most markers. Without them, it ends at the line's last bracket.
    """
    beginning, last, done = re.compile(_beginning(session_tag)), line.rfind("]"), 0
    while (found := beginning.search(line, done)) and found.end() <= last:
        end = _ASKS.search(line, found.end())
        done = end.end() if end else last + 1
        yield line[found.start() : done]


def find_span(line: str, text: str) -> tuple[int, int] | None:
    """Return the start and end of the marker `text` in a line, in characters. There may be any text around it.

    At the end of a line, the beginning that a truncation left of the marker is enough. Return None if there is no
    marker.
    """
    at = line.find(text[:SHORTEST_SPAN]) if text else -1
    while at >= 0:
        if line.startswith(text, at):
            return at, at + len(text)
        if len(line) - at >= SHORTEST_SPAN and text.startswith(line[at:]):
            return at, len(line)
        at = line.find(text[:SHORTEST_SPAN], at + 1)
    return None


def find_possible(line: str, session_tag: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each part of a line that may be a marker of the session, the longest first.

    There may be any text around a marker.
    """
    if not may_contain(line, session_tag):
        return
    for found in re.finditer(_beginning(session_tag), line):
        brackets = _BRACKET.finditer(line, found.end(), found.start() + LONGEST)
        ends = [bracket.end() for bracket in islice(brackets, MOST_ENDS)]
        yield from ((found.start(), end) for end in reversed(ends))


def may_contain(text: str, session_tag: str) -> bool:
    """Return False if a quick check shows that the text contains no marker of the session."""
    return f" {session_tag[:SESSION_DIGITS]}" in text


def _beginning(session_tag: str) -> str:
    # Any reader's: a fork inherits its parent's markers, and markers of the first builds have no digits of the reader.
    return rf"\[(?:{_WORDS}) {session_tag[:SESSION_DIGITS]}(?:[0-9a-f]{{2}})?(?:\.\d+)?: "


def write_marker(name: str, word: str, what: str, sources: Sequence[Source], note: str, end: str) -> str:
    """Return the marker for `what` (in words), without a newline.

    `name`: the session's tag and the number of the call. `note` follows the sources. `end` is `ASK_AGAIN`, or says what
    the command did.
    """
    same = "same as " if word == LEFT_OUT else ""  # the other words say so themselves
    if len(sources) == 1:
        where = same + _where(sources[0])
    elif all(source.origin is not Origin.RESTORED for source in sources):
        where = f"{same}above: " + "; ".join(_where(source, "in ") for source in sources)
    else:
        where = same.replace(" as ", " as: ") + "; ".join(map(_where, sources))
    return f"[{word} {name}: {what}, {where}{note}; {end}]"


def write_moved(marker: str, what: str, section: str) -> str:
    """Return the text that replaces a `marker` for `what` if its lines are now in a restored section."""
    source = Source(section, Origin.RESTORED)
    return write_marker(name_in(marker), LEFT_OUT, what, [source], "", ASK_AGAIN)


def write_gone(marker: str, what: str, count: int) -> str:
    """Return the text that replaces a `marker` for `what`, `count` lines, if its source has left the conversation."""
    end = f"; {ASK_AGAIN}" if _ASKS.search(marker) else ""
    gone = "was omitted here and is no longer above" if count == 1 else "were omitted here and are no longer above"
    return f"[{_GONE} {name_in(marker)}: {what} {gone}{end}]"


def name_in(marker: str) -> str:
    """Return the name of a marker: the session's tag and the number of the call."""
    return marker[: marker.index(":")].partition(" ")[2]


def name_lines(path: str, spans: Sequence[Span]) -> str:
    """Return words such as `app.py lines 40-80, 90`."""
    return f"{name_of(path)} {spell_lines(spans)}"


def spell_lines(spans: Sequence[Span]) -> str:
    """Return words such as `lines 40-80, 90`."""
    plural = len(spans) > 1 or spans[0][0] != spans[0][1]
    return f"line{'s' if plural else ''} {spell_spans(spans)}"


@lru_cache(maxsize=1024)
def name_of(path: str) -> str:
    """Return the last part of the path, shortened. The reader asked for the file and knows it by that name."""
    return names_of([path])[path]


def names_of(paths: Sequence[str], beside: Iterable[str] = ()) -> dict[str, str]:
    """Name each path, with enough directories to tell it from the other paths and from those `beside`."""
    parts = {path: [blob] if (blob := _blob(path)) else path.rstrip("/").split("/") for path in (*paths, *beside)}
    names: dict[str, str] = {}
    for path in paths:
        own, others = parts[path], [theirs for other, theirs in parts.items() if other != path]
        sizes = range(1, len(own))
        kept = next((n for n in sizes if all(own[-n:] != theirs[-n:] for theirs in others)), len(own))
        names[path] = name_path("/".join(own[-kept:]) or path)
    return names


def _blob(key: str) -> str:
    """Return git's name of a blob, such as `HEAD:src/app.py`. Return "" if the key is not a blob."""
    return key[4:] if key.startswith("git:") else ""


def name_path(name: str) -> str:
    """Return a path, or only its end if it has more than `NAME_CHARS` characters.

    Quote it if it has blanks or punctuation, so that no part of it reads like a part of the marker.
    """
    name = printable(name)
    name = name if len(name) <= NAME_CHARS else "…" + name[-NAME_CHARS + 1 :]
    return json.dumps(name, ensure_ascii=False) if _UNCLEAR.search(name) else name


def spell_spans(spans: Sequence[Span]) -> str:
    """Return words such as `40-80, 90`."""
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def _where(source: Source, above: str = "above in ") -> str:
    lines = f"{'output ' if source.of_output else ''}{spell_spans(source.lines)} " if source.lines else ""
    there = (f" as {source.there}" if source.there else "") + (f" {source.form}" if source.form else "")
    if source.origin is Origin.RESTORED:
        under = f' under "{printable(source.heading)}"' if source.heading else ""
        return f'{lines}in the section "{source.label}"{under}{there}'
    name = _name_tool(source) or f'"{shown_label(source.label)}"'
    if source.origin is Origin.COMMAND:
        kind = "command " if name.startswith('"') else ""
        return f"{lines}{above}your own {'earlier ' if source.is_earlier else ''}{kind}{name}{there}"
    article = "an earlier " if source.is_earlier else "" if name.startswith('"') else "the "
    return f"{lines}{above}{article}{name}{there}"


def _name_tool(source: Source) -> str:
    """Return words such as `read of app.py 5-30`. Return "" for a command.

    If the file is the marker's own, return `read of 5-30` or `read of the whole file`.
    """
    tool, path, span = split_tool(source.label)
    name = source.file or name_of(path)
    if source.same_file and (span or tool == "write"):
        name = ""
    elif source.same_file and source.is_whole:
        name = "the whole file"
    return " of ".join(filter(None, (tool, f"{name} {span}".strip()))) if tool else ""
