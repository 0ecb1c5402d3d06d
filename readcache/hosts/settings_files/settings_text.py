"""Insert, find and remove entries in the text of a settings file. The text is edited and never written from scratch.

After each edit the text is parsed again. If its value is not the expected one, the edit is dropped and the user is
told.
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from readcache import ReadcacheError, UsageError
from readcache.hosts.host import Entry
from readcache.hosts.settings_files.json_text import JsonText, Path

_BOM = "\ufeff"
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NAMED = re.compile(r"(?<![^\s/'\"])[^\s/'\"]*readcache[^\s/]*(?: +[a-z][\w-]*){0,2}")


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
