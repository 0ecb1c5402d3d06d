"""Paths as keys: one name for one file. Text only; the disk is never asked."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from itertools import chain, islice

_DRIVE = re.compile(r"([A-Za-z]):[\\/]")
_WORD = re.compile(r"[^\s'\"`=:;,|&<>(){}]+")  # a word that may be the name of a file in a command
_PATTERN = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{([^{}\s,]*,[^{}\s]*)\}")
_UNSPLIT = re.compile(r"[^\s'\"`;|&<>()]+")  # such a word with its braces
_WINDOWS = re.compile(r"(?<![A-Za-z])[A-Za-z]:\\[^\s'\"`|<>]+")  # an absolute path, its backslashes doubled in JSON
MOST_EXPANDED, MOST_BRACES = 64, 6  # limits of one word: how many words it expands to, and its pairs of braces
MOST_PATTERNS = 200  # words of a command that are globs: each takes a tenth of a millisecond
LONGEST_PATH = 4096  # characters: Linux opens no file by a longer name
_ESCAPED = re.compile(r"(?:\\u00|%)([0-9A-Fa-f]{2})")  # an escaped character, in JSON and in a URI
# Variables of JavaScript and Vite, attributes in Odoo and other programs, keys for `jq`: not names of files.
_ATTRIBUTE = re.compile(r"\.key|(?:\w+\.)?(?:process|meta|self|this|config|ctx|context|globalThis)\.(?:env|key)")


@lru_cache(maxsize=1024)
def canonical_path(path: str, cwd: str) -> str:
    """Return `path`, as given in directory `cwd`, as a key: absolute, without `.` and doubled slashes.

    `D:\\a`, `D:/a` and `/d/a` (the same file in Git's bash) all become `/d/a`. The home directory is unknown here, so
    `~/a` stays `~/a`, and `~/../a` stays too. A glob pattern is treated like a path. Links are not followed. So `..`
    stays after a name in `path`, which may be a link: `link/../a` may be another file than `a`.
    """
    path = _slashes(path)
    parts = path.split("/")
    first = next((n for n, part in enumerate(parts) if part.strip(".") and not (part[0] == "~" and not n)), len(parts))
    if ".." in parts[first:]:
        front = canonical_path("/".join([*parts[:first], ""]), cwd).rstrip("/")
        names = [name for name in parts[first:] if name not in ("", ".")]
        return "/".join(names if front == "." else [front, *names])
    if not path.startswith(("/", "~")):
        path = posixpath.join(_slashes(cwd), path)
    if path.startswith("~"):
        home, _, rest = path.partition("/")
        rest = posixpath.normpath(rest.lstrip("/"))
        return home if rest == "." else f"{home}/{rest}"
    path = posixpath.normpath(path)
    return path[1:] if path.startswith("//") else path


def _slashes(path: str) -> str:
    drive = _DRIVE.match(path)
    if drive is None:
        return path
    return f"/{drive.group(1).lower()}/" + path[drive.end() :].replace("\\", "/")


def matches_any(path: str, globs: Iterable[str]) -> bool:
    """Return True if one of the globs names this path.

    `*.pem` and `secrets/*.txt` name files below any directory, `/etc/*` an absolute path; `**/` also matches nothing.
    If the path has `..` in it, the file that it names without links counts, too.
    """
    if len(path) > LONGEST_PATH:
        return False
    pattern = _pattern_of(tuple(globs))
    if "/../" in path and pattern.fullmatch(posixpath.normpath(path)) is not None:
        return True
    return pattern.fullmatch(path) is not None


@lru_cache(maxsize=64)
def _pattern_of(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Return one pattern for all of the globs, because each call looks up several names. A glob that begins with `*` is
    not tried after each slash."""
    forms = dict.fromkeys(form for glob in globs for form in (glob, glob.replace("**/", "")))
    any_start, others = ([translate(form) for form in forms if form.startswith("*") is any] for any in (True, False))
    return re.compile(rf"(?s:{'|'.join((*any_start, ''))}(?:.*/)?(?:{'|'.join(others) or '(?!)'}))")


@lru_cache(maxsize=64)
def literals_of(globs: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Return patterns for the longest literal part of each glob: a text with a matching name contains one of the parts.
    Parts with the same first character share a pattern. A search for it takes a nanosecond per character."""
    parts = {max(re.split(r"[*?]|\[.*", glob.replace("**/", "")), key=len) for glob in globs}
    shortest = {part for part in parts if not any(other in part for other in parts - {part})}
    return tuple(
        re.compile(re.escape(first) + f"(?:{'|'.join(sorted(re.escape(part[1:]) for part in same))})")
        for first, same in ((first, [part for part in shortest if part[:1] == first]) for first in _firsts(shortest))
    )


def _firsts(parts: Iterable[str]) -> list[str]:
    return sorted({part[:1] for part in parts})


def words_of(command: str) -> list[str]:
    """Return the words of a command that may be names of files."""
    return _WORD.findall(command)


@lru_cache(maxsize=16)  # each event of a call asks again
def may_name(command: str, globs: tuple[str, ...]) -> bool:
    """Return True if a word of the command, or of a tool's arguments, may name a file of these globs."""
    if "%" in command or "\\u00" in command:
        command = f"{command}\n{_ESCAPED.sub(lambda match: chr(int(match[1], 16)), command)}"
    braced = [word for word in _UNSPLIT.findall(command) if _BRACES.search(word)] if "{" in command else []
    if not braced and not any(part.search(command) for part in literals_of(globs)) and _PATTERN.search(command) is None:
        return False  # true of nearly every command
    expanded = (word for each in braced for word in islice(_expand(each), MOST_EXPANDED))
    windows = (word.replace("\\", "/") for word in _WINDOWS.findall(command)) if ":\\" in command else ()
    words = dict.fromkeys(chain(words_of(command), expanded, windows))
    patterns = [word for word in words if _PATTERN.search(word)]
    if len(patterns) > MOST_PATTERNS or any(_is_file(word, globs) for word in words):
        return True
    return any(_may_match(word.rpartition("/")[2], globs) for word in patterns)


def _expand(word: str, most: int = MOST_BRACES) -> Iterator[str]:
    """Yield the words into which bash expands a word with braces. `most`: the number of pairs of braces to expand."""
    found = _BRACES.search(word) if most else None
    if found is None:
        yield word
        return
    for part in found[1].split(","):
        yield from _expand(word[: found.start()] + part + word[found.end() :], most - 1)


def _is_file(word: str, globs: tuple[str, ...]) -> bool:
    return matches_any(word, globs) and _ATTRIBUTE.fullmatch(word) is None


def _may_match(pattern: str, globs: tuple[str, ...]) -> bool:
    """Return True if the pattern of a command (`.e*`) may match a file that one of the globs names. Return False for
    `*` and `*.x`: otherwise nearly every directory would be protected."""
    is_pattern = pattern[:1] not in ("*", "") and _PATTERN.search(pattern) is not None
    return is_pattern and any(fnmatchcase(glob, pattern) for glob in globs)
