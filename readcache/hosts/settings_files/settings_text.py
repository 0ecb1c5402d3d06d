"""Read and edit JSON with comments, the format in which editors and agents keep their settings.

`JsonText` inserts or deletes single members, so the user's comments, order and white space stay. Accepted beyond JSON:
`//` and `/* */` comments, and a comma after the last member. Everything else that JSON forbids is refused.

`SettingsText` inserts, finds and removes entries. After each edit the text is parsed again. If its value is not the
expected one, the edit is dropped and the user is told.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from readcache import ReadcacheError, UsageError
from readcache.hosts.host import Entry

# An unclosed string or comment ends with the text. Without this, each quote would start another search for an end, and
# the time would grow with the square of the length.
_COMMENT = re.compile(r'("(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z))|,(?=[ \t\r\n]*[\]}])', re.DOTALL)
_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()

Path = Sequence[str | int]  # keys of objects, and indexes in lists
_BOM = "\ufeff"
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NAMED = re.compile(r"(?<![^\s/'\"])[^\s/'\"]*readcache[^\s/]*(?: +[a-z][\w-]*){0,2}")


class _Member(NamedTuple):
    """A member of an object or list, from `start` to `end` (character indexes in the text).

    `start`: the start of its key, or of its value in a list. `at`: the start of its value. `comma`: the index of the
    comma after it, or -1.
    """

    key: str | int
    start: int
    at: int
    end: int
    comma: int


class JsonText:
    """The text of a file, and its value: an empty object if the text is blank.

    Raise UsageError with the line number if the text is not JSON with comments.
    """

    def __init__(self, text: str) -> None:
        # Blanked texts keep their length, so an index is valid in all three.
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
        """Return the text with a new first member in the object or list at the end of `path`. A list ignores `key`."""
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
        """Return the text without the member at the end of `path`. Comments beside it stay."""
        members, _ = self._members(self._start_of(path[:-1]))
        index = max(at for at, member in enumerate(members) if member.key == path[-1])
        text, (_, start, _, end, comma) = self.text, members[index]
        is_last = comma < 0
        if is_last and index:
            comma = members[index - 1].comma
            start, end = start - 1, end - 1
        if not is_last and not text[end:comma].strip():
            end = comma + 1
        elif comma >= 0:  # the comma is before the member, or a comment is between them
            text = text[:comma] + text[comma + 1 :]
        line, behind = text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1
        if behind and not text[line:start].strip() and not text[end:behind].strip():
            return text[:line] + text[behind:]
        return text[:start].rstrip(" \t") + text[end:] if is_last else text[:start] + text[end:].lstrip(" \t")

    def is_blank_inside(self, path: Path) -> bool:
        """Return True for an object or list that contains nothing, not even a comment."""
        start = self._start_of(path)
        members, end = self._members(start)
        return not members and not self.text[start + 1 : end].strip()

    def _start_of(self, path: Path) -> int:
        """Return the index at which the value at the end of `path` starts. If a key occurs twice, the last member
        counts, as for other readers of JSON."""
        at = self._skip(0)
        for step in path:
            at = [member.at for member in self._members(at)[0] if member.key == step][-1]
        return at

    def _members(self, start: int) -> tuple[list[_Member], int]:
        """Return the members of the object or list that starts at `start`, and the index of its closing bracket."""
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
        """Return the white space at the start of the line that contains `at`."""
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t"))]


def settings_in(file: str) -> Mapping[str, Any]:
    """Return the value of a settings file. Empty if the file cannot be read, or its value is not an object."""
    try:
        with open(file, encoding="utf-8-sig") as opened:
            value = JsonText(opened.read()).value
    except (OSError, UnicodeDecodeError, UsageError):
        return {}
    return value if isinstance(value, dict) else {}


def _blanked(found: re.Match[str]) -> str:
    return found[1] or " " * len(found[0])


def _rendered(value: object, unit: str, newline: str) -> str:
    """Return the value as JSON on several lines. The first line has no indentation."""
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline)


class SettingsText:
    """One settings file while entries are inserted and removed. Raise ReadcacheError, with the file's path, if it
    cannot be read as an object."""

    def __init__(self, path: str, data: bytes | None) -> None:
        self.path = path
        try:
            text = (data or b"").decode()
        except UnicodeDecodeError:
            raise ReadcacheError(f"{path} is not UTF-8: convert it first; nothing was changed") from None
        self._bom = _BOM if text.startswith(_BOM) else ""
        try:
            self._json = JsonText(text.removeprefix(_BOM))
        except UsageError as error:
            raise ReadcacheError(f"{path} cannot be read, {error}: repair it first; nothing was changed") from None
        if not isinstance(self.value, dict):
            raise ReadcacheError(f"{path} has no mapping at its top: repair it first; nothing was changed")

    @property
    def value(self) -> Any:
        """The value of the file's JSON."""
        return self._json.value

    @property
    def data(self) -> bytes:
        """The file's new content."""
        return (self._bom + self._json.text).encode()

    def says_nothing(self) -> bool:
        """Return True for an empty file, or an empty object without comments."""
        return "".join(self._json.text.split()) in ("", "{}")

    def has(self, entry: Entry) -> bool:
        """Return True if exactly this value is there, and no other value that an earlier version of readcache put
        there."""
        return [self._at(path) for path in self._alike(entry)] == [entry.value]

    def put(self, entry: Entry) -> None:
        """Insert the entry. Raise ReadcacheError if the user has set another value."""
        node, keys, depth = self.value, entry.keys, 0
        while keys[depth] != "+" and keys[depth] in node:
            node, depth = node[keys[depth]], depth + 1
            if depth == len(keys) and node == entry.value:
                return
            if depth == len(keys) or not isinstance(node, list if keys[depth] == "+" else dict):
                raise self._refusal(f"{'.'.join(keys[:depth])} is {_short(node)}", entry)
        value = entry.value
        for key in reversed(keys[depth + 1 :]):
            value = [value] if key == "+" else {key: value}
        inside = _inside(self.value, keys[:depth])
        expected = [value, *inside] if isinstance(inside, list) else {**inside, keys[depth]: value}
        self._change(self._json.with_member(keys[:depth], keys[depth], value), keys[:depth], expected, entry)

    def take_out(self, entry: Entry) -> None:
        """Remove the values that readcache inserted for the entry, and each object or list that is empty afterwards."""
        while paths := self._alike(entry):
            path = paths[0]
            self._delete(path, entry)
            while path := path[:-1]:
                if not self._json.is_blank_inside(path):
                    break
                self._delete(path, entry)

    def _alike(self, entry: Entry) -> list[tuple[str | int, ...]]:
        """Return the paths of the entry's values, including values that another version, program or mode of readcache
        wrote."""
        keys = entry.keys[:-1] if entry.keys[-1] == "+" else entry.keys
        found = self._at(keys)
        if keys is not entry.keys:
            values = found if isinstance(found, list) else []
            return [(*keys, index) for index, value in enumerate(values) if _is_alike(value, entry.value)]
        is_ours = found is not None and (keys[-1] == "readcache" or _is_alike(found, entry.value))
        return [keys] if is_ours else []

    def _at(self, path: Path) -> Any:
        """Return the value at `path`, or None if there is none."""
        try:
            return _inside(self.value, path)
        except (KeyError, TypeError):
            return None

    def _delete(self, path: Path, entry: Entry) -> None:
        expected = copy.copy(_inside(self.value, path[:-1]))
        del expected[path[-1]]
        self._change(self._json.without(path), path[:-1], expected, entry)

    def _change(self, text: str, path: Path, expected: object, entry: Entry) -> None:
        """Accept `text` if it has the `expected` object or list at the end of `path`. Otherwise raise
        ReadcacheError."""
        try:
            changed = JsonText(text)
        except UsageError:
            changed = None
        if changed is None or _inside(changed.value, path) != expected:
            raise self._refusal("the file is written in a way that we cannot edit", entry)
        self._json = changed

    def _refusal(self, what: str, entry: Entry) -> ReadcacheError:
        wanted = f"{'.'.join(entry.keys)} = {json.dumps(entry.value)}"
        return ReadcacheError(f"{self.path}: {what}; nothing was changed: set {wanted} yourself, or remove your value")


def _inside(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _is_alike(value: object, ours: object) -> bool:
    return value == ours or (type(value) is type(ours) and _gist(value) == _gist(ours) != "")


def _gist(value: object) -> str:
    """Return the part of a readcache value that stays when the program's path, the mode or the policy change, e.g.
    "readcache hook codex". Return "" if it names no readcache command."""
    found = _NAMED.findall("\n".join(_STRING.findall(json.dumps(value))))
    return re.sub("['\"]", "", found[-1]) if found else ""


def _short(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "…"
