"""JSON with comments, as editors and agents keep their settings: read, and edited by putting members in and cutting
them out, so that the user's comments, order and white space stay.

Taken: `//` and `/* */` comments, and a comma after the last member. What else JSON does not allow is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from readcache import UsageError

# What is not closed ends with the text: to look for the end again from each quote would take the square of its length.
_COMMENT = re.compile(r'("(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z))|,(?=[ \t\r\n]*[\]}])', re.DOTALL)
_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()

Path = Sequence[str | int]  # keys of objects, and places in lists


class _Member(NamedTuple):
    """A member from `start`, which is that of its key, if it has one, to `end`; its value begins at `at`. `comma`: the
    place of the one after it, or -1."""

    key: str | int
    start: int
    at: int
    end: int
    comma: int


class JsonText:
    """The text of a file, and its value: an empty object where nothing is in it. UsageError with the line."""

    def __init__(self, text: str) -> None:
        # Of the same length, so that a place in one of them is a place in all.
        self.text, self._bare = text, _COMMENT.sub(_blanked, text)
        self._plain = _LAST_COMMA.sub(_blanked, self._bare)
        try:
            self.value: Any = json.loads(self._plain) if self._plain.strip() else {}
        except json.JSONDecodeError as error:
            line = text.count("\n", 0, error.pos) + 1
            raise UsageError(f"line {line}: {error.msg}") from None
        except RecursionError:
            raise UsageError("it is nested too deeply") from None

    def with_member(self, path: Path, key: str, value: object) -> str:
        """The text with a first member in the object or list at the end of the path; in a list it has no key."""
        newline = "\r\n" if "\r\n" in self.text else "\n"
        if not self._plain.strip():
            lead = "" if self.text.endswith("\n") or not self.text else newline
            return self.text + lead + _rendered({key: value}, "  ", newline) + newline
        start = self._start_of(path)
        members, end = self._members(start)
        name = "" if self._bare[start] == "[" else json.dumps(key, ensure_ascii=False) + ": "
        line_end = self._bare.find("\n", start, members[0].start if members else end)
        if members and line_end < 0:
            at, item = start + 1, name + json.dumps(value, ensure_ascii=False) + ", "
        else:
            first = next(iter(self._members(self._start_of(()))[0]), None)
            outer, unit = self._indent(start), (self._indent(first.start) if first else "") or "  "
            indent = self._indent(members[0].start) if members else outer + unit
            item = newline + indent + name + _rendered(value, unit, newline + indent)
            if line_end < 0:
                at, item = end, item + newline + outer
            else:
                at, item = line_end - (self.text[line_end - 1] == "\r"), item + ("," if members else "")
        return self.text[:at] + item + self.text[at:]

    def without(self, path: Path) -> str:
        """The text without the member at the end of the path. Comments beside it stay."""
        members, _ = self._members(self._start_of(path[:-1]))
        index = max(at for at, member in enumerate(members) if member.key == path[-1])
        text, (_, start, _, end, comma) = self.text, members[index]
        is_last = comma < 0
        if is_last and index:
            comma = members[index - 1].comma
            start, end = start - 1, end - 1
        if not is_last and not text[end:comma].strip():
            end = comma + 1
        elif comma >= 0:  # it is before the member, or behind a comment
            text = text[:comma] + text[comma + 1 :]
        line, behind = text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1
        if behind and not text[line:start].strip() and not text[end:behind].strip():
            return text[:line] + text[behind:]
        return text[:start].rstrip(" \t") + text[end:] if is_last else text[:start] + text[end:].lstrip(" \t")

    def is_blank_inside(self, path: Path) -> bool:
        """True for an object or list with nothing in it, not even a comment."""
        start = self._start_of(path)
        members, end = self._members(start)
        return not members and not self.text[start + 1 : end].strip()

    def _start_of(self, path: Path) -> int:
        """Where the value begins; of several members with one key the last one counts, as readers have it."""
        at = self._skip(0)
        for step in path:
            at = [member.at for member in self._members(at)[0] if member.key == step][-1]
        return at

    def _members(self, start: int) -> tuple[list[_Member], int]:
        """The members of the object or list that begins there, and the place of its closing bracket."""
        members, at = list[_Member](), self._skip(start + 1)
        while self._bare[at] not in "]}":
            begin = at
            key: str | int = len(members)
            if self._bare[start] == "{":
                key, at = _DECODER.raw_decode(self._plain, at)
                at = self._skip(self._skip(at) + 1)
            _, end = _DECODER.raw_decode(self._plain, at)
            after = self._skip(end)
            has_comma = self._bare[after] == ","
            members.append(_Member(key, begin, at, end, after if has_comma else -1))
            at = self._skip(after + has_comma)
        return members, at

    def _skip(self, at: int) -> int:
        found = _BLANK.match(self._bare, at)
        return found.end() if found else at

    def _indent(self, at: int) -> str:
        """The white space that the line of `at` begins with."""
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t"))]


def settings_in(file: str) -> Mapping[str, Any]:
    """The value of a settings file. Empty if the file cannot be read."""
    try:
        with open(file, encoding="utf-8-sig") as opened:
            value = JsonText(opened.read()).value
    except (OSError, UnicodeDecodeError, UsageError):
        return {}
    return value if isinstance(value, dict) else {}


def _blanked(found: re.Match[str]) -> str:
    return found[1] or " " * len(found[0])


def _rendered(value: object, unit: str, newline: str) -> str:
    """JSON over several lines, the first one without indentation."""
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline)
