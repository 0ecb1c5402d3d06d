"""TOML settings, by tomlkit, which keeps what it does not change. What it did is taken as insertions or as cuts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from readcache import ReadcacheError, UsageError
from readcache.hosts.settings_json import nested
from readcache.hosts.text_edit import Format, TextEdit, edits_between


def _document(text: str) -> Any:
    """UsageError for what is no TOML; ReadcacheError where tomlkit is not installed."""
    try:
        import tomlkit
    except ImportError:
        raise ReadcacheError("TOML settings need tomlkit: pip install 'readcache[init]'") from None
    try:
        return tomlkit.parse(text.replace("\r\n", "\n"))
    except ValueError as error:
        raise UsageError(f"it is no TOML: {error}") from None


def _read(text: str) -> object:
    return _document(text).unwrap()


def _put(text: str, keys: Sequence[str], value: object) -> list[TextEdit]:
    document, left = _document(text), list(keys)
    node = document
    while left[0] != "+" and left[0] in node and len(left) > 1:
        node, left = node[left[0]], left[1:]
    if left[0] == "+":
        node.append(value)
    else:
        node[left[0]] = nested(left[1:], value)
    return _edits(text, document.as_string())


def _cut(text: str, path: Sequence[str | int], **_: bool) -> list[TextEdit]:
    document = _document(text)
    node = document
    for step in path[:-1]:
        node = node[step]
    del node[path[-1]]
    return _edits(text, document.as_string())


def _edits(text: str, changed: str) -> list[TextEdit]:
    """tomlkit works with "\\n"; a file that has "\\r\\n" keeps it."""
    return edits_between(text, changed.replace("\n", "\r\n") if "\r\n" in text else changed)


TOML = Format(_read, _put, _cut)
