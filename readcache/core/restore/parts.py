"""Takes a result apart: lines of files are restored as they are now, and the rest as it was.

In the rest, a note of one line replaces the lines of files:

    [30 lines of app.py]
    [2 lines that are not in app.py now]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from readcache.core.judging.line_index import find_hunks
from readcache.core.model.events import MappedSpan
from readcache.core.model.text import bodies, path_in, split_lines
from readcache.core.restore.evidence import Result
from readcache.core.restore.located import CurrentFile, Located, locate_lines, locate_numbered
from readcache.core.restore.plan import file_names

# The share of a result's lines that must be lines of files, so that nothing else in it is restored. It is below 1
# because hosts put a few lines around them.
NEARLY_ALL = 0.75


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a result."""

    numbers: Mapping[str, Collection[int]]  # by path: the numbers that its lines have now
    printed: Mapping[str, Mapping[int, str]]  # by path: the lines that were printed, by their numbers then, if known
    rest: tuple[str, ...]  # empty if nearly all lines are lines of files
    source_map: tuple[MappedSpan, ...]  # of the rest
    of_files: tuple[str, ...]  # files that lines of the rest may belong to; their numbers are unknown
    share_of_files: float  # of the lines of the rest
    absent: tuple[str, ...]  # the files that may have had lines of the rest, and do not have them now


def take_apart(result: Result, open_file: Callable[[str], CurrentFile | str]) -> Parts:
    """Return the parts. `open_file(path)` returns the file, or the reason why it must not be restored."""
    lines = split_lines(result.event.text)
    located, printed = Located(), dict[str, dict[int, str]]()
    notes = dict(_stale_in_hunks(lines, result.traces, open_file))
    loose: dict[int, tuple[str, ...]] = {}
    doubts: dict[int, str] = {}  # what the line above these lines says of them
    for mapped in result.event.source_map:
        shown = bodies(lines[mapped.at : mapped.at + mapped.count], mapped.sep)
        opened = {key: open_file(key) for key in mapped.keys}
        found, stale = _find(mapped, shown, opened, result.changed)
        for key, now in found.numbers.items():
            located.add(key, now, ())
        if mapped.first:
            printed.setdefault(mapped.keys[0], {}).update(enumerate(shown, mapped.first))
        located.path_of |= {mapped.at + n: path for n, path in found.path_of.items()}
        located.old_of |= {mapped.at + n: path for n, path in found.old_of.items()}
        known = found.path_of.keys() | found.old_of.keys()
        left = [mapped.at + n for n in range(mapped.count) if n not in known]
        if any(isinstance(file, str) or file.is_on_disk for file in map(open_file, stale)):
            notes |= dict.fromkeys(left, f" from before {file_names(stale)} changed")
            continue
        loose |= dict.fromkeys(left, mapped.keys)
        if stale:  # nobody knows which of these lines have changed
            doubts |= dict.fromkeys(left, f" that may be from before {file_names(stale)} changed:")
    numbers = located.numbers
    if len(located.path_of) + len(located.old_of) >= NEARLY_ALL * len(lines):
        return Parts(numbers, printed, (), (), (), 0, ())
    notes |= {n: f" of {file_names([path])}" for n, path in located.path_of.items()}
    notes |= {n: f" from before {file_names([path])} changed" for n, path in located.old_of.items()}
    keys = sorted({key for one in loose.values() for key in one})
    absent = tuple(key for key in keys if isinstance(file := open_file(key), CurrentFile) and file.is_on_disk)
    rest, source_map = _rest(lines, notes, doubts, result.event.source_map)
    return Parts(numbers, printed, rest, source_map, tuple(keys), len(loose) / len(rest), absent)


def _find(
    mapped: MappedSpan, shown: Sequence[str], opened: Mapping[str, CurrentFile | str], changed: Collection[str]
) -> tuple[Located, list[str]]:
    """Return where the lines of a span are now, and the files that make the other lines old."""
    files = [file for file in opened.values() if isinstance(file, CurrentFile)]
    if mapped.first and len(opened) == 1:
        if files:
            return locate_numbered(shown, mapped.first, files[0]), []
        return Located(path_of=dict.fromkeys(range(len(shown)), *opened)), []
    found = locate_lines(shown, files, changed)
    whole = {file.path for file in files if file.is_whole(found.numbers.get(file.path, ()))}
    return found, [
        key for key, file in opened.items() if (key in changed or isinstance(file, str)) and key not in whole
    ]


def _stale_in_hunks(
    lines: Sequence[str], paths: Collection[str], open_file: Callable[[str], CurrentFile | str]
) -> Iterator[tuple[int, str]]:
    """Yield (index, note) for each line of a diff that is not in its file on this disk."""
    for hunk in find_hunks(lines):
        of = [path for path in paths if path.endswith(f"/{path_in(hunk.sep)}")]
        files = [file for path in of if isinstance(file := open_file(path), CurrentFile) and file.is_on_disk]
        shown = bodies(lines[hunk.at : hunk.at + hunk.count], hunk.sep) if files else []
        for at, line in enumerate(shown, hunk.at):
            if not any(file.contains(line) for file in files):
                yield at, f" that are not in {file_names(of)} now"


def _rest(
    lines: Sequence[str], notes: Mapping[int, str], doubts: Mapping[int, str], source_map: Sequence[MappedSpan]
) -> tuple[tuple[str, ...], tuple[MappedSpan, ...]]:
    """Return the lines, with notes instead of lines or above them, and the source map of the result."""
    out: list[str] = []
    index_of: dict[int, int] = {}
    for (note, doubt), indexes in groupby(range(len(lines)), key=lambda n: (notes.get(n), doubts.get(n))):
        block = list(indexes)
        if note or doubt:
            out.append(_note(len(block), note or doubt or ""))
        else:
            index_of.update(zip(block, range(len(out), len(out) + len(block)), strict=True))
        out += [lines[n] for n in block] if note is None else []
    return tuple(out), tuple(span for mapped in source_map for span in _left(mapped, index_of))


def _note(count: int, note: str) -> str:
    return f"[{count} line{'s' * (count > 1)}{note if count > 1 else note.replace(' are ', ' is ')}]"


def _left(mapped: MappedSpan, index_of: Mapping[int, int]) -> Iterator[MappedSpan]:
    """Yield the parts of a span that are left. `index_of`: the new indexes of the lines that are left."""
    indexes = [n for n in range(mapped.at, mapped.at + mapped.count) if n in index_of]
    for _, group in groupby(enumerate(indexes), key=lambda pair: pair[1] - pair[0]):
        block = [n for _, n in group]
        first = mapped.first and mapped.first + block[0] - mapped.at
        eof = mapped.eof and block[-1] == mapped.at + mapped.count - 1
        yield replace(mapped, at=index_of[block[0]], count=len(block), first=first, eof=eof)
