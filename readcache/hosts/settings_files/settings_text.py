"""Entries in the text of a settings file: put in, found again, taken out. The text is edited, never written anew.

After each edit the text is read again: where it does not say what it is to say, nothing is done, and the user is told.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from readcache import ReadcacheError, UsageError
from readcache.hosts.host import Entry
from readcache.hosts.settings_files.json_text import cut_json, put_json, read_json
from readcache.hosts.settings_files.text_edit import TextEdit, edited

Path = tuple[str | int, ...]  # keys of mappings, and places in lists
_NAMED = re.compile(r"[^\s/'\"]*readcache[^\s/]*(?: +[a-z][\w-]*){0,2}")


class SettingsText:
    """The text of one settings file, while entries are put in and taken out. ReadcacheError names the file."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.value = self._read(text)

    def has(self, entry: Entry) -> bool:
        """True if exactly that value is there, and none that an earlier version of us put there."""
        return self.values_of(entry) == [entry.value]

    def values_of(self, entry: Entry) -> list[Any]:
        """The values that are the entry's, maybe as of another version, program or mode."""
        return [self._at(path) for path in self._alike(entry)]

    def put(self, entry: Entry) -> None:
        """Puts it in. ReadcacheError where the user has another value."""
        keys, value = list(entry.keys), entry.value
        expected = copy.deepcopy(self.value)
        node: Any = expected
        for place, key in enumerate(keys[:-1]):
            if node.get(key) is None:
                node[key] = [] if keys[place + 1] == "+" else {}
            node = node[key]
            if not isinstance(node, list if keys[place + 1] == "+" else dict):
                raise self._refusal(f"{'.'.join(keys[: place + 1])} is {_short(node)}", entry)
        last = keys[-1]
        if last == "+":
            node.append(value)
        elif isinstance(node.get(last), list) and not isinstance(value, list):
            node[last].append(value)
            keys.append("+")
        elif last in node and node[last] != value:
            raise self._refusal(f"{'.'.join(keys)} is {_short(node[last])}", entry)
        elif last in node:
            return
        else:
            node[last] = value
        edits = self._edits(lambda: put_json(self.text, keys, value), entry)
        if any(edit.length for edit in edits):  # never replace a value of the user's
            raise self._refusal("it would have to be written in another way", entry)
        self._change(edits, expected, entry)

    def take_out(self, entry: Entry, users: SettingsText | None = None) -> None:
        """Takes out what was put in for the entry, if it is there, and the mappings and lists around it that are empty
        then, if `users`, the file before us, did not have them."""
        while path := next(self._alike(entry), None):
            while len(path) > 1 and len(self._at(path[:-1])) == 1 and not (users and users.has_at(path[:-1])):
                path = path[:-1]
            self._cut(path, entry)

    def has_at(self, path: Path) -> bool:
        """True if something is there."""
        return self._at(path) is not None

    def _alike(self, entry: Entry) -> Iterator[Path]:
        """The paths of values that are the entry's, maybe as of another version, program or mode."""
        keys = entry.keys[:-1] if entry.keys[-1] == "+" else entry.keys
        found = self._at(keys)
        if isinstance(found, list) and not isinstance(entry.value, list):
            for place, value in enumerate(found):
                if _is_alike(value, entry.value):
                    yield (*keys, place)
        elif found is not None and (entry.keys[-1] == "readcache" or _is_alike(found, entry.value)):
            yield keys

    def _at(self, path: Sequence[str | int]) -> Any:
        """The value there; None for nothing."""
        node = self.value
        for step in path:
            if not (step in node if isinstance(node, dict) else isinstance(node, list) and isinstance(step, int)):
                return None
            node = node[step]
        return node

    def _cut(self, path: Sequence[str | int], entry: Entry) -> None:
        expected = copy.deepcopy(self.value)
        node: Any = expected
        for step in path[:-1]:
            node = node[step]
        del node[path[-1]]
        edits = self._edits(lambda: cut_json(self.text, path), entry)
        if not self._says(edited(self.text, edits), expected):  # a comment stands where a line ends
            edits = self._edits(lambda: cut_json(self.text, path, with_space=False), entry)
        self._change(edits, expected, entry)

    def _edits(self, make: Callable[[], list[TextEdit]], entry: Entry) -> list[TextEdit]:
        try:
            return make()
        except UsageError as error:
            raise self._refusal(str(error), entry) from None

    def _says(self, text: str, expected: object) -> bool:
        try:
            return _without_empty(read_json(text)) == _without_empty(expected)
        except UsageError:
            return False

    def _change(self, edits: list[TextEdit], expected: object, entry: Entry) -> None:
        text = edited(self.text, edits)
        if not self._says(text, expected):
            raise self._refusal("the file is written in a way that we cannot edit", entry)
        self.text, self.value = text, read_json(text)

    def _read(self, text: str) -> Any:
        try:
            value = read_json(text)
        except UsageError as error:
            raise ReadcacheError(f"{self.path} cannot be read, {error}: repair it first; nothing was changed") from None
        if not isinstance(value, dict):
            raise ReadcacheError(f"{self.path} has no mapping at its top: repair it first; nothing was changed")
        return value

    def _refusal(self, what: str, entry: Entry) -> ReadcacheError:
        wanted = f"{'.'.join(entry.keys)} = {json.dumps(entry.value)}"
        return ReadcacheError(f"{self.path}: {what}; nothing was changed: set {wanted} yourself, or remove your value")


def _without_empty(value: object) -> object:
    """The value with None in place of what is empty."""
    if isinstance(value, dict):
        return {key: _without_empty(inner) for key, inner in value.items()} or None
    return [_without_empty(inner) for inner in value] or None if isinstance(value, list) else value


def _is_alike(value: object, ours: object) -> bool:
    return value == ours or (type(value) is type(ours) and _gist(value) == _gist(ours) != "")


def _gist(value: object) -> str:
    """What a value of ours keeps when the program's place, the mode and the policy change: "readcache hook codex"."""
    found = _NAMED.findall(" ".join(_texts(value)))
    return re.sub("['\"]", "", found[-1]) if found else ""


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _short(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "…"
