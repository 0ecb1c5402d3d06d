"""The text that stands in an omission's place: its wording is spelled here and nowhere else.

A marker is one line: what is left out, that the bytes are the same, where they stand, how to get them all the same.
It is written for a model, which sees no call ids: a source is named by the command or tool that printed it and how many
calls ago. Each session has a tag of its own, so that no file can imitate a marker.

    [UNCHANGED 7f3a: app.py lines 40-80, same bytes as in "nl -ba app.py" 3 calls ago; to see, repeat the request]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import xxhash

# Shown of a command that printed a source, and of a path: two of them and the words make up the contract's 120 characters.
LABEL_CHARS = 40
PATH_CHARS = 40
MOST_SOURCES = 3

# `cd somewhere && ` in front says nothing about which command it was.
_CD = re.compile(r"^\s*cd\s+[^\s;&|]+\s*(?:&&|;)\s*(?=\S)")
# Directories in front of a file's name: the name tells which one it was.
_DIRECTORIES = re.compile(r"(?<![^\s'\"=])[\w.~+@:-]*(?:/[\w.+@-]+)*/(?=[\w.+@-])")
_WORDS = "FILE_UNCHANGED|UNCHANGED|GONE"


@dataclass(frozen=True, slots=True)
class Source:
    """Where omitted lines stand, as the reader knows it."""

    label: str  # the command or tool
    calls_ago: int
    own_command: bool = False  # in the reader's own call, not in a result
    heading: str | None = None  # of a restored section
    lines: tuple[int, int] | None = None  # their numbers there, where they differ from the file's


def tag(session_id: str) -> str:
    """Four hex digits that mark this session's markers."""
    return f"{xxhash.xxh3_64_intdigest(session_id.encode('utf-8', 'surrogatepass')) & 0xFFFF:04x}"


def find_markers(text: str, session_tag: str) -> list[str]:
    """The markers of a session that stand in `text`, each without its newline."""
    if session_tag not in text:
        return []
    return re.findall(rf"^\[(?:{_WORDS}) {session_tag}: [^\n]*\]$", text, re.MULTILINE)


def write_marker(
    session_tag: str, what: str, sources: Sequence[Source], *, whole_read: bool = False, note: str = ""
) -> str:
    """The marker for `what` (already in words), without a newline."""
    word = "FILE_UNCHANGED" if whole_read else "UNCHANGED"
    where = ", ".join(_where(source) for source in sources)
    return f"[{word} {session_tag}: {what}, same bytes as {where}{note}; to see, repeat the request]"


def write_gone(session_tag: str, what: str) -> str:
    """What takes a marker's place when its source has left the conversation."""
    return f"[GONE {session_tag}: {what} was left out here and is no longer in view; to see it, repeat the request]"


def name_lines(path: str, spans: Sequence[tuple[int, int]]) -> str:
    """`app.py lines 40-80, 90`: the last part of a path is what the reader, who asked for it, knows it by."""
    runs = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
    plural = len(spans) > 1 or spans[0][0] != spans[0][1]
    return f"{shorten_path(path.rsplit('/', 1)[-1] or path)} line{'s' if plural else ''} {runs}"


def shorten_path(path: str) -> str:
    """The end of a long path, cut at a slash where there is one: names end in what tells them apart."""
    path = _printable(path)
    if len(path) <= PATH_CHARS:
        return path
    tail = path[-PATH_CHARS + 2 :]
    slash = tail.find("/")
    return "…" + (tail[slash:] if 0 <= slash < len(tail) - 1 else tail)


def _where(source: Source) -> str:
    if source.heading is not None:
        return f'in the section "{source.heading}"'
    ago = "1 call ago" if source.calls_ago == 1 else f"{source.calls_ago} calls ago"
    lines = "" if source.lines is None else f" (there {source.lines[0]}-{source.lines[1]})"
    if source.own_command:
        return f"in your own command {ago}{lines}"
    return f'in "{_shorten_label(source.label)}"{lines} {ago}'


def _shorten_label(label: str) -> str:
    label = _printable(" ".join(_DIRECTORIES.sub("", _CD.sub("", label)).split()))
    if len(label) <= LABEL_CHARS:
        return label
    head = LABEL_CHARS * 2 // 5
    return label[:head] + "…" + label[len(label) - (LABEL_CHARS - head - 1) :]


def _printable(text: str) -> str:
    """A marker is one line, whatever a file is called."""
    return "".join(c if c.isprintable() else "?" for c in text)
