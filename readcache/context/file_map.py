"""Build the FILE MAP, the KEY SYMBOLS (defined names with their lines) and the EDITS (short diffs) from the log.

With them, no model has to remember these facts, and none can invent them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff

from readcache.context.tool_calls import Links, ListedCall, failed_and_wrote_nothing, tool_calls
from readcache.core.messages.messages import Message
from readcache.core.messages.tools import replacements
from readcache.core.model.claims import glob_stem
from readcache.core.model.events import Delivered, MappedSpan, Origin, Record, Wrote
from readcache.core.model.spans import Span, merge_spans, subtract
from readcache.core.model.text import bodies, printable, split_lines

FILE_MAP = "FILE MAP, from a log (line numbers as of when they were read):"
KEY_SYMBOLS = "KEY SYMBOLS, from lines that were read (line numbers as of then):"
# Newest first; the rest is only counted. 99 of 100 recorded sessions touched at most 60 files, nine of ten at most 25.
MOST_FILES = 60
MOST_SPANS = 8  # ranges named for one file; 99 of 100 files have at most six
MOST_FILES_OF_SYMBOLS = 12
MOST_SYMBOLS = 8  # for one file
EDITS = "EDITS, newest last (- removed, + added):"
EARLIER_EDITS = "EDITS, the newest last (- is what stood there, + what came there):"  # in summaries of earlier builds
MOST_LINES = 60  # the newest, of all edits together
MOST_LINES_OF_EDIT = 6
MOST_CHARS_OF_LINE = 120

_DEFINITION = re.compile(
    r"(?:(?:export|default|public|private|protected|static|async|abstract|final|unsafe|pub(?:\(\w+\))?)\s+)*"
    r"(?:def|class|func|function|fn|struct|interface|trait|enum|type)\s+(?:\([^)]*\)\s*)?"
    r"([A-Za-z_]\w*)\s*(?:[(:{<=\[;]|$|(?:struct|interface|extends|implements|where|for|func)\b)"
)


@dataclass(slots=True)
class _File:
    read: list[Span] = field(default_factory=list)
    is_written: bool = False
    length: int = 0  # lines; 0: unknown
    symbols: dict[str, int] = field(default_factory=dict)


def file_map(records: Iterable[Record], agent_id: str, root: str) -> list[str]:
    """Return one line for each file, last touched first, such as `src/app.py: read lines 1-80 of 120, never 81-120`.

    The symbols follow. Paths below `root` are relative to it. Return [] if no file was touched. Omitted lines count as
    read, because they were visible then.
    """
    files: dict[str, _File] = {}  # files touched last are at the end
    for record in records:
        event = record.event
        if isinstance(event, Delivered) and event.origin is Origin.RESULT and record.agent_id == agent_id:
            lines = split_lines(event.text) if event.source_map else []
            for mapped in event.source_map:
                if len(mapped.keys) == 1 and mapped.first:
                    file = _touched(files, mapped.keys[0])
                    last = mapped.first + mapped.count - 1
                    file.read.append((mapped.first, last))
                    if mapped.eof or last > file.length:
                        file.length = last if mapped.eof else 0
                    file.symbols |= _symbols(lines, mapped)
            for marker in event.markers:
                if marker.path is not None:
                    _touched(files, marker.path).read.append((marker.start, marker.end))
        elif isinstance(event, Wrote):
            for path in event.keys:
                if glob_stem(path) is None:
                    file = _touched(files, path)
                    file.is_written, file.length = True, 0
    newest = list(reversed(files.items()))
    names = {path: printable(path.removeprefix(root.rstrip("/") + "/")) for path, _ in newest}
    map_ = [f"{names[path]}: {_facts(file)}" for path, file in newest[:MOST_FILES]]
    if len(newest) > MOST_FILES:
        map_.append(f"and {len(newest) - MOST_FILES} files touched earlier")
    symbols = [f"{names[path]}: {_first(file.symbols)}" for path, file in newest if file.symbols]
    return [*map_, *(["", KEY_SYMBOLS, *symbols[:MOST_FILES_OF_SYMBOLS]] if symbols else [])]


def _touched(files: dict[str, _File], path: str) -> _File:
    file = files[path] = files.pop(path, _File())
    return file


def _symbols(lines: list[str], mapped: MappedSpan) -> Iterator[tuple[str, int]]:
    """Yield the names that these lines define at the top level, with their line numbers. Definitions are recognised by
    the keywords of common languages."""
    for number, line in enumerate(bodies(lines[mapped.at : mapped.at + mapped.count], mapped.sep), mapped.first):
        found = _DEFINITION.match(line)
        if found:
            yield found[1], number


def _first(symbols: dict[str, int]) -> str:
    return ", ".join(f"{name} {line}" for name, line in sorted(symbols.items(), key=lambda it: it[1])[:MOST_SYMBOLS])


def _facts(file: _File) -> str:
    facts = []
    if file.read:
        spans = merge_spans(file.read)
        length = file.length if spans[-1][1] <= file.length else 0  # it may have become shorter
        unread = subtract(((1, length),), spans)
        never = f", never {_spell(unread)}" if unread else ""
        facts.append(f"read lines {_spell(spans)}{f' of {length}' if length else ''}{never}")
    return "; ".join([*facts, *["written"] * file.is_written])


def _spell(spans: Sequence[Span]) -> str:
    runs = ", ".join(str(start) if start == end else f"{start}-{end}" for start, end in spans[:MOST_SPANS])
    return f"{runs} and {len(spans) - MOST_SPANS} more ranges" if len(spans) > MOST_SPANS else runs


def edits(old: Sequence[Message], records: Iterable[Record], root: str, earlier: Sequence[str]) -> list[str]:
    """Return the lines of the section with the edits in the messages `old`; [] if there are none. Edits that `earlier`
    summaries list come first. `records` show which commands wrote a file."""
    wrote = {record.event.call_id: record.event for record in records if isinstance(record.event, Wrote)}
    lines = [line for summary in earlier for line in _listed_edits(summary)]
    for call in tool_calls(old, root, Links()):
        shown = [] if failed_and_wrote_nothing(call) else list(_edit(call, wrote))
        more = [f"({len(shown) - MOST_LINES_OF_EDIT} more lines)"] if len(shown) > MOST_LINES_OF_EDIT else []
        lines += [line[:MOST_CHARS_OF_LINE] for line in [*shown[:MOST_LINES_OF_EDIT], *more]]
    return ["", EDITS, *lines[-MOST_LINES:]] if lines else []


def _listed_edits(summary: str) -> list[str]:
    """Return the lines below the heading of the edits, also in a summary of an earlier build."""
    _, _, edits_ = summary.replace(f"\n{EARLIER_EDITS}\n", f"\n{EDITS}\n", 1).partition(f"\n{EDITS}\n")
    return edits_.splitlines()


def _edit(call: ListedCall, wrote: Mapping[str, Wrote]) -> Iterator[str]:
    """Yield the lines of one edit: its file and the changed lines, or the command that changed files."""
    use, changes = call.use, list(replacements(call.call.arguments or {}))
    if use.kind == "write" and changes:
        yield f"{use.path}:"
        for before, after in changes:
            diff = unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
            yield from (line for line in list(diff)[2:] if not line.startswith("@@"))
    elif use.kind == "write" and use.patch:
        yield from (line for line in use.patch.splitlines() if line.startswith(("+", "-", "*** ")))
    elif use.command is not None and call.call.call_id in wrote:
        yield f"`{' '.join(use.command.split())}`"
