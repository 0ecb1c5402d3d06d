"""YAML settings: PyYAML says where everything stands, and lines of ours are put in and cut out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from readcache import ReadcacheError, UsageError
from readcache.hosts.settings_files.json_text import nested
from readcache.hosts.settings_files.text_edit import Format, TextEdit


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise ReadcacheError("YAML settings need PyYAML: pip install 'readcache[init]'") from None
    return yaml


def _compose(text: str) -> Any:
    """The file's node, with the places; None for an empty one. UsageError."""
    yaml = _yaml()
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise UsageError(f"it is no YAML: {' '.join(str(error).split())}") from None


def _read(text: str) -> object:
    yaml = _yaml()
    _compose(text)
    try:
        found: object = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"it is no YAML: {' '.join(str(error).split())}") from None
    return {} if found is None else found


def _put(text: str, keys: Sequence[str], value: object) -> list[TextEdit]:
    newline, root, left = "\r\n" if "\r\n" in text else "\n", _compose(text), list(keys)
    if root is None:
        return [_after_line(text, len(text), _render(nested(keys, value), 0), newline)]
    node, column = root, 0
    while left[0] != "+" and (pair := _pair(node, left[0])) is not None:
        column, node, left = pair[0].start_mark.column + 2, pair[1], left[1:]
    if not isinstance(node.value, list):  # `key:` and nothing behind it
        return [_after_line(text, node.end_mark.index, _render(nested(left, value), column), newline)]
    made = nested(left[1:], value) if left[0] == "+" else nested(left, value)
    if node.flow_style:
        item = json.dumps(made, ensure_ascii=False)
        item = item if left[0] == "+" else item[1:-1]
        end = node.end_mark.index - 1
        if node.value:
            end, item = _end(node.value[-1]), f", {item}"
        return [TextEdit(end, item)]
    column = node.start_mark.column
    lines = _render([made], column) if left[0] == "+" else _render(made, column)
    return [_after_line(text, _end(node.value[-1]), lines, newline)]


def _cut(text: str, path: Sequence[str | int], **_: bool) -> list[TextEdit]:
    node: Any = _compose(text)
    for step in path[:-1]:
        node = node.value[step] if isinstance(step, int) else _pair(node, step)[1]
    last = path[-1]
    place = last if isinstance(last, int) else node.value.index(_pair(node, last))
    member = node.value[place]
    start, end = _start(member), _end(member)
    if node.flow_style:
        if place:
            start = _end(node.value[place - 1])
        elif len(node.value) > 1:
            end = _start(node.value[1])
        return [TextEdit(start, length=end - start)]
    start, end = text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1 or len(text)
    if end == len(text) and not text.endswith("\n") and start:  # the last line stays one without an end
        start -= 2 if text[:start].endswith("\r\n") else 1
    return [TextEdit(start, length=end - start)]


def _pair(node: Any, key: str) -> Any:
    """(the key's node, the value's) of the last member of that key; None for none."""
    pairs = node.value if node.id == "mapping" else ()
    return next((pair for pair in reversed(pairs) if pair[0].value == key), None)


def _start(member: Any) -> int:
    node = member[0] if isinstance(member, tuple) else member
    return int(node.start_mark.index)


def _end(member: Any) -> int:
    """Where the text of a member ends, without the comments that follow it."""
    key, node = member if isinstance(member, tuple) else (None, member)
    if isinstance(node.value, list) and node.value and not node.flow_style:
        return _end(node.value[-1])
    if node.id == "scalar" and node.style in ("|", ">"):
        return int(node.end_mark.index) - 1
    return max(int(node.end_mark.index), int(key.end_mark.index) + 1 if key is not None else 0)


def _after_line(text: str, place: int, lines: Sequence[str], newline: str) -> TextEdit:
    """The lines, put in after the line of `place`."""
    at = text.find("\n", max(place, 0))
    made = newline.join(lines)
    if at < 0:
        return TextEdit(len(text), f"{newline}{made}" if text else made + newline)
    return TextEdit(at + 1, made + newline)


def _render(value: Any, column: int) -> list[str]:
    """Lines of YAML; texts in quotes, since many a word means something else without."""
    blank = " " * column
    if isinstance(value, dict) and value:
        lines = []
        for key, inner in value.items():
            if isinstance(inner, (dict, list)) and inner:
                lines += [f"{blank}{key}:", *_render(inner, column + 2)]
            else:
                lines.append(f"{blank}{key}: {json.dumps(inner, ensure_ascii=False)}")
        return lines
    if isinstance(value, list):
        return [f"{blank}- {json.dumps(inner, ensure_ascii=False)}" for inner in value]
    return [blank + json.dumps(value, ensure_ascii=False)]


YAML = Format(_read, _put, _cut)
