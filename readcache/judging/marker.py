"""The text that stands in an omission's place.

A marker is one line: what is left out, that the bytes are the same, where they stand, how to get them all the same.
It is written for a model, which sees no call ids: a source is named by the command or tool that printed it and how many
calls ago. Each session has a tag of its own, so that no file can imitate a marker.

    [UNCHANGED 7f3a: app.py lines 40-80, same bytes as "nl -ba …" 3 calls ago; repeat the request to see]
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import xxhash

# Characters shown of a command that printed a source, and of a file's name. With them the median marker over the
# recorded sessions has 125 characters (the contract aims at 120); 24 for a command would save three of them.
LABEL_CHARS = 32
NAME_CHARS = 40
MOST_SOURCES = 3
SOURCE_CHARS = 45  # about what naming one more source takes

_WORDS = "FILE_UNCHANGED|UNCHANGED|GONE"
# `cd somewhere && ` in front says nothing about which command it was.
_CD = re.compile(r"^\s*cd\s+[^\s;&|]+\s*(?:&&|;)\s*(?=\S)")
# Directories in front of a file's name: the name tells which one it was.
_DIRECTORIES = re.compile(r"(?<![^\s'\"=])[\w.~+@:-]*(?:/[\w.+@-]+)*/(?=[\w.+@-])")


@dataclass(frozen=True, slots=True)
class Source:
    """Where omitted lines stand, as the reader knows it."""

    label: str  # the command or tool; the heading of a restored section
    calls_ago: int = 0
    own_command: bool = False  # in the reader's own call, not in a result
    restored: bool = False
    there: tuple[tuple[int, int], ...] = ()  # the numbers in front of them there, where they differ


def tag(session_id: str) -> str:
    """Four hex digits that mark this session's markers."""
    return f"{xxhash.xxh3_64_intdigest(session_id.encode('utf-8', 'surrogatepass')) & 0xFFFF:04x}"


def find_markers(text: str, session_tag: str) -> list[str]:
    """The markers of a session that stand in `text`, each without its newline."""
    if f" {session_tag}: " not in text:
        return []
    return re.findall(rf"^\[(?:{_WORDS}) {session_tag}: [^\n]*\]$", text, re.MULTILINE)


def write_marker(
    session_tag: str,
    what: str,
    sources: Sequence[Source],
    *,
    paths: Collection[str] = (),
    whole_read: bool = False,
    note: str = "",
) -> str:
    """The marker for `what` (in words), without a newline. `paths` are those that `what` names already."""
    word = "FILE_UNCHANGED" if whole_read else "UNCHANGED"
    names = frozenset(path.rsplit("/", 1)[-1] for path in paths)
    where = ", ".join(_where(source, names) for source in sources)
    return f"[{word} {session_tag}: {what}, same bytes as {where}{note}; repeat the request to see]"


def write_gone(session_tag: str, what: str) -> str:
    """What takes a marker's place when its source has left the conversation."""
    return f"[GONE {session_tag}: {what} stood here by reference and left the conversation; repeat the request to see]"


def name_lines(path: str, spans: Sequence[tuple[int, int]]) -> str:
    """`app.py lines 40-80, 90`: the last part of a path is what the reader, who asked for it, knows it by."""
    runs = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
    plural = len(spans) > 1 or spans[0][0] != spans[0][1]
    return f"{name_of(path)} line{'s' if plural else ''} {runs}"


def name_of(path: str) -> str:
    """The name a path ends in, shortened."""
    name = _printable(path.rstrip("/").rsplit("/", 1)[-1] or path)
    return name if len(name) <= NAME_CHARS else "…" + name[-NAME_CHARS + 1 :]


def _where(source: Source, names: frozenset[str]) -> str:
    if source.restored:
        return f'the section "{source.label}"'
    ago = "1 call ago" if source.calls_ago == 1 else f"{source.calls_ago} calls ago"
    there = f" (there {', '.join(f'{a}-{b}' for a, b in source.there)})" if source.there else ""
    if source.own_command:
        return f"your own command {ago}{there}"
    label = _shorten_label(source.label, names)
    return f"{'read' if label == 'read …' else chr(34) + label + chr(34)} {ago}{there}"


@lru_cache(maxsize=256)
def _shorten_label(label: str, names: frozenset[str]) -> str:
    """What is left when directories, a `cd` in front and the names that the marker has already said are taken off."""
    words = _printable(" ".join(_DIRECTORIES.sub("", _CD.sub("", label)).split())).split(" ")
    label = " ".join("…" if word.strip("'\"") in names else word for word in words)
    if len(label) <= LABEL_CHARS:
        return label
    head = LABEL_CHARS // 2
    return label[:head] + "…" + label[len(label) - (LABEL_CHARS - head - 1) :]


def _printable(text: str) -> str:
    """A marker is one line, whatever a file is called."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
