"""The text that stands in an omission's place.

A marker is one line: what is left out, where it stands, how to get the bytes all the same.

    [UNCHANGED 7f3a.12: app.py lines 40-80, above in "nl -ba src/app.py"; repeat to see]

It is written for a model, which sees no call ids and cannot count calls: a source is named by the command that printed
it, as the model wrote it. Each session has a tag of its own, by which a harness tells its markers from others; the
number of the call after it makes each marker the only one of its kind, wherever a message list is searched for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from readcache.core.model.events import Origin
from readcache.core.model.spans import Span

FILE_UNCHANGED = "FILE_UNCHANGED"  # the whole file was asked for, and each of its bytes is as at the source
UNCHANGED = "UNCHANGED"  # these lines are, and the file is not known to have changed since
LEFT_OUT = "LEFT_OUT"  # the lines stand there; says nothing about the file
_GONE = "GONE"
PRUNED = "PRUNED"  # the notes of `context.prune` begin so

# How to get the bytes all the same. Not said of a command that may do more than read.
ASK_AGAIN = "repeat to see"
OF_OUTPUT = "of that output"  # behind the numbers of lines in a source's text, which are true until the host cuts it

# Characters shown of a command that printed a source, and of a file's name. The contract aims at 130 for a marker;
# what they are over the recorded sessions stands in tests/benchmarks/README.md.
LABEL_CHARS = 40
NAME_CHARS = 40
MOST_SOURCES = 3
SHORTEST_SPAN = 12  # characters of a marker that still look like one: "[UNCHANGED 7"
# Of a line that looks like nothing but markers: characters of one, and brackets that may end it. The longest of the
# recordings has 494 and 3.
LONGEST = 1_500
MOST_ENDS = 24

_ENDS = f"; {ASK_AGAIN}]"
_BRACKET = re.compile("]")
_LINE_ENDS = re.compile(r"[\r\n]")
_TOOLS = ("read", "write")  # the labels of reads and writes by a tool begin so
_SPAN = re.compile(r" (\d+-\d*)$")
_WORDS = "|".join((FILE_UNCHANGED, UNCHANGED, LEFT_OUT, _GONE, PRUNED))


@dataclass(frozen=True, slots=True)
class Source:
    """Where omitted lines stand, as the reader knows it."""

    label: str  # the command or tool; the heading of a restored section
    origin: Origin = Origin.RESULT
    lines: tuple[Span, ...] = ()  # which of the omitted lines, where other sources have others
    of_output: bool = False  # `lines` are numbers of lines of this output, and the marker names lines of files
    there: str = ""  # what they are there, where that differs: "lines 9-39", "a/util.py lines 3-62"
    is_earlier: bool = False  # a later call has the same label
    same_file: bool = False  # as the lines that are left out, which the marker has named already
    form: str = ""  # how it shows them, where that is not as they stood here: "without numbers", "within a diff"
    file: str = ""  # the name of the file that a tool read or wrote


def find_markers(text: str, session_tag: str) -> list[str]:
    """The markers and notes of a session that stand in `text`, also indented, quoted, in a patch or before CRLF."""
    if not may_contain(text, session_tag) or not re.search(_beginning(session_tag), text):
        return []
    lines = _LINE_ENDS.split(text)
    return [marker for line in lines if may_contain(line, session_tag) for marker in _markers_in(line, session_tag)]


def _markers_in(line: str, session_tag: str) -> Iterator[str]:
    """Up to the words that end most markers, or else to the line's last bracket; disjoint."""
    beginning, last, done = re.compile(_beginning(session_tag)), line.rfind("]"), 0
    while (found := beginning.search(line, done)) and found.end() <= last:
        end = line.find(_ENDS, found.end())
        done = last + 1 if end < 0 else end + len(_ENDS)
        yield line[found.start() : done]


def find_span(line: str, text: str) -> tuple[int, int] | None:
    """Where the marker `text`, or the beginning that a cut left of it, stands in a line, between whatever words."""
    at = line.find(text[:SHORTEST_SPAN]) if text else -1
    while at >= 0:
        if line.startswith(text, at):
            return at, at + len(text)
        if len(line) - at >= SHORTEST_SPAN and text.startswith(line[at:]):
            return at, len(line)
        at = line.find(text[:SHORTEST_SPAN], at + 1)
    return None


def find_possible(line: str, session_tag: str) -> Iterator[tuple[int, int]]:
    """The stretches of a line that may be a marker of the session, words around it apart; the longest first."""
    if not may_contain(line, session_tag):
        return
    for found in re.finditer(_beginning(session_tag), line):
        brackets = _BRACKET.finditer(line, found.end(), found.start() + LONGEST)
        ends = [bracket.end() for bracket in islice(brackets, MOST_ENDS)]
        yield from ((found.start(), end) for end in reversed(ends))


def may_contain(text: str, session_tag: str) -> bool:
    """A quick check: False if the text has no marker of the session."""
    return f" {session_tag}" in text


def _beginning(session_tag: str) -> str:
    return rf"\[(?:{_WORDS}) {session_tag}(?:\.\d+)?: "


def write_marker(name: str, word: str, what: str, sources: Sequence[Source], note: str, end: str) -> str:
    """The marker for `what` (in words), without a newline. `name` is the session's tag and the number of the call;
    `note` follows the sources; `end` is `ASK_AGAIN`, or says what the command did."""
    if len(sources) > 1 and all(source.origin is Origin.RESULT for source in sources):
        where = "above: " + "; ".join(_where(source, "in ") for source in sources)
    else:
        where = "; ".join(map(_where, sources))
    return f"[{word} {name}: {what}, {where}{note}; {end}]"


def write_moved(marker: str, what: str, section: str) -> str:
    """The text that replaces a `marker` for `what` when its lines now stand in a restored section."""
    source = Source(section, Origin.RESTORED)
    return write_marker(name_in(marker), LEFT_OUT, what, [source], "", ASK_AGAIN)


def write_gone(marker: str, what: str) -> str:
    """The text that replaces a `marker` for `what` when its source has left the conversation."""
    end = f"; {ASK_AGAIN}" if marker.endswith(f"; {ASK_AGAIN}]") else ""
    return f"[{_GONE} {name_in(marker)}: {what} omitted here; the source left the conversation{end}]"


def name_in(marker: str) -> str:
    """The name of a marker: the session's tag and the number of the call."""
    return marker[: marker.index(":")].partition(" ")[2]


def name_lines(path: str, spans: Sequence[Span]) -> str:
    """`app.py lines 40-80, 90`."""
    return f"{name_of(path)} {spell_lines(spans)}"


def spell_lines(spans: Sequence[Span]) -> str:
    """`lines 40-80, 90`."""
    plural = len(spans) > 1 or spans[0][0] != spans[0][1]
    return f"line{'s' if plural else ''} {spell_spans(spans)}"


@lru_cache(maxsize=1024)
def name_of(path: str) -> str:
    """The last part of the path, shortened. The reader asked for the file and knows it by that name."""
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
    """`HEAD:src/app.py`, as git has it; empty for what is not a blob."""
    return key[4:] if key.startswith("git:") else ""


def name_path(name: str) -> str:
    """A path, its end alone where it is long."""
    name = _printable(name)
    return name if len(name) <= NAME_CHARS else "…" + name[-NAME_CHARS + 1 :]


def spell_spans(spans: Sequence[Span]) -> str:
    """`40-80, 90`."""
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def _where(source: Source, above: str = "above in ") -> str:
    lines = f"{'output ' if source.of_output else ''}{spell_spans(source.lines)} " if source.lines else ""
    there = (f" as {source.there}" if source.there else "") + (f" {source.form}" if source.form else "")
    if source.origin is Origin.RESTORED:
        return f'{lines}in the section "{source.label}"{there}'
    name = _name_tool(source) or f'"{_shorten_label(source.label)}"'
    if source.origin is Origin.COMMAND:
        kind = "command " if name.startswith('"') else ""
        return f"{lines}{above}your own {'earlier ' if source.is_earlier else ''}{kind}{name}{there}"
    article = "an earlier " if source.is_earlier else "" if name.startswith('"') else "the "
    return f"{lines}{above}{article}{name}{there}"


def split_tool(label: str) -> tuple[str, str, str]:
    """Split `read /w/app.py 5-30` into tool, path and lines. All three are empty for a command."""
    tool, _, path = label.partition(" ")
    if tool not in _TOOLS or not path.startswith(("/", "~")):
        return "", "", ""
    span = _SPAN.search(path)
    return (tool, path[: span.start()], span[1]) if span else (tool, path, "")


def _name_tool(source: Source) -> str:
    """`read of app.py 5-30`; of the marker's own file `read of 5-30`, or just `read`. Empty for a command."""
    tool, path, span = split_tool(source.label)
    name = "" if source.same_file else source.file or name_of(path)
    return " of ".join(filter(None, (tool, f"{name} {span}".strip()))) if tool else ""


@lru_cache(maxsize=256)
def _shorten_label(label: str) -> str:
    """The command as the model wrote it, cut in the middle alone: where it is too long, or goes on in other lines."""
    first, _, rest = label.strip().partition("\n")
    last = rest.rsplit("\n", 1)[-1] if rest else first
    if not rest and len(first) <= LABEL_CHARS:
        return _printable(first)
    tail = min(len(last), LABEL_CHARS * 2 // 3)  # the end of a command says more than a `cd` in front of it
    head = min(len(first), LABEL_CHARS - tail - 1)
    return _printable(first[:head] + "…" + last[len(last) - tail :])


def _printable(text: str) -> str:
    """A marker is one line, whatever a file is called."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
