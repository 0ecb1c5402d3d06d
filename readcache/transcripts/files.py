"""Find, unpack and open the files of transcripts. The bytes of a file show its format, never its name."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import IO, Any, NamedTuple

from readcache.core.model.errors import UsageError
from readcache.transcripts.formats import FORMS
from readcache.transcripts.records import SAMPLE, Content, Damage, NotUnderstood

HEAD = 4096  # bytes of a file's first line that show if it is JSON, and if its lines are whole conversations
LINE_MARKS = [b'"messages"']  # in the head of a file whose lines are whole conversations
_XZ, _GZIP = b"\xfd7zXZ\x00", b"\x1f\x8b"
_HIDDEN = "."
_EVENT = re.compile(r"(?:event-)?(\d+)(?:-.+)?\.json")


class Found(NamedTuple):
    """A file to read. `named`: True if the user named the file itself. `size`: its size on disk, in bytes."""

    path: str
    named: bool
    size: int


class Unit(NamedTuple):
    """The work of one worker: a file, or one line of a file whose lines are whole conversations.

    `size`: its share of the file on disk, in bytes. `problem`: the reason why the file cannot be read, or "".
    """

    file: Found
    size: int
    line: int = 0  # from 1; 0: the whole file
    text: bytes = b""
    problem: str = ""


def find_files(paths: Iterable[str]) -> Iterator[Found]:
    """Yield the files, and the files below the directories. Raise UsageError if a path does not exist."""
    for path in paths:
        if not os.path.exists(path):
            raise UsageError(f"{path} does not exist: give transcript files, or directories that contain some")
        named = not os.path.isdir(path)
        for file in [path] if named else _files_below(path):
            if os.path.isfile(file):
                yield Found(file, named, os.path.getsize(file))
            elif not named and os.path.isdir(file):
                yield Found(file, named, sum(map(os.path.getsize, _events_in(file))))


def _files_below(directory: str) -> Iterator[str]:
    """Yield the paths of the files below a directory, except hidden ones, in a stable order.

    Links to directories are not followed. If a directory contains one conversation, with an event in each file, yield
    the directory instead of those files.
    """
    for parent, inner, files in os.walk(directory):
        inner[:] = sorted(name for name in inner if name[0] != _HIDDEN)
        if os.path.basename(os.path.abspath(parent)) == "events" and (events := _events_in(parent)):
            yield parent
            files = sorted(set(files) - set(map(os.path.basename, events)))
        yield from (os.path.join(parent, name) for name in sorted(files) if name[0] != _HIDDEN)


def _events_in(directory: str) -> list[str]:
    """Return the paths of the event files in a directory, by their numbers. OpenHands keeps each event in a file of its
    own, with the number in the name."""
    found = [match for match in map(_EVENT.fullmatch, os.listdir(directory)) if match]
    return [os.path.join(directory, match[0]) for match in sorted(found, key=lambda match: int(match[1]))]


def units_of(found: Found) -> Iterator[Unit]:
    """Yield one unit for the file, or one for each line if its lines are whole conversations."""
    if os.path.isdir(found.path):
        yield Unit(found, found.size)
        return
    try:
        with open(found.path, "rb") as raw, _unpacked(raw) as file:
            head = file.readline(HEAD)
            if not any(mark in head for mark in LINE_MARKS) or head.lstrip()[:1] != b"{":
                yield Unit(found, found.size)
                return
            first, before = head if head.endswith(b"\n") else head + file.readline(), 0
            for number, line in enumerate(chain([first], file), 1):
                if line.strip():
                    at = raw.tell()
                    yield Unit(found, at - before, number, line)
                    before = at
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        yield Unit(found, 0, problem=f"{found.path} cannot be read: {error}")


def _unpacked(raw: IO[bytes]) -> IO[bytes] | gzip.GzipFile:
    begin = raw.read(len(_XZ))
    raw.seek(0)
    if begin == _XZ:
        return lzma.open(raw)
    return gzip.open(raw) if begin.startswith(_GZIP) else raw


def read_content(unit: Unit) -> Content:
    """Return the content of a unit. Raise NotUnderstood if it cannot be read, or is neither JSON nor lines of JSON
    objects."""
    path = unit.file.path
    if unit.problem:
        raise NotUnderstood(unit.problem)
    if unit.line:
        return _content(path, _parsed([unit.text], unit.line), unit.line)
    if os.path.isdir(path):
        return _content(path, _parsed(map(_bytes_of, _events_in(path))))
    try:
        with open(path, "rb") as raw, _unpacked(raw) as file:
            data = file.read(HEAD)
            if data.strip()[:1] not in (b"{", b"["):
                raise NotUnderstood(f"{path}:1: neither JSON nor lines of JSON objects; is this a transcript?")
            data += file.read()
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise NotUnderstood(f"{path} cannot be read: {error}") from error
    lines = io.BytesIO(data)
    is_one = _value(lines.readline()) is None or lines.tell() == len(data)
    if is_one and (value := _value(data)) is not None:
        members = value if isinstance(value, list) else [value]
        pairs = (each if isinstance(each, list) else [each] for each in members)  # OpenHands' oldest format has pairs
        return _content(path, ((1, each) for pair in pairs for each in pair))
    lines.seek(0)
    return _content(path, _parsed(lines))


def _bytes_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _parsed(lines: Iterable[bytes], first: int = 1) -> Iterator[tuple[int, Any]]:
    return ((number, _value(line)) for number, line in enumerate(lines, first) if line.strip())


def _content(path: str, values: Iterable[tuple[int, Any]], first: int = 1) -> Content:
    damage = Damage()

    def objects() -> Iterator[tuple[int, dict[str, Any]]]:
        for number, value in values:
            if isinstance(value, dict):
                yield number, value
            else:
                damage.add(path, number)

    found = objects()
    content = Content(path, list(islice(found, SAMPLE)), found, damage=damage)
    if not content.sample and not (damage.lines and first > 1):
        raise NotUnderstood(f"{path}:{first}: neither JSON nor lines of JSON objects; is this a transcript?")
    return content


def _value(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def kept_transcripts() -> Iterator[tuple[str, str]]:
    """Yield (format, directory) for each host that keeps its transcripts in a directory. It need not exist."""
    for form in FORMS:
        if form.kept:
            variable, home, below = form.kept
            yield form.name, os.path.join(os.environ.get(variable) or os.path.expanduser(home), below)
