"""JSON with comments, as editors and agents keep their settings: parsed with positions, and edited by inserting and
cutting text, so that the user's comments, order and white space stay.

Taken: `//` and `/* */` comments, and a comma after the last member. What else JSON does not allow is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from readcache import UsageError
from readcache.hosts.settings_files.text_edit import TextEdit

_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMENTS_OF_LINE = re.compile(r"(?:[ \t]*(?:/\*.*?\*/|//[^\r\n]*))*", re.DOTALL)
_SCALAR = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?\d[\d.eE+-]*|true|false|null', re.DOTALL)
_SPACE = " \t\r\n"


class _Node(NamedTuple):
    """A value, from `start` to `end`; an object or a list with its members."""

    start: int
    end: int
    value: object
    members: tuple[_Member, ...] = ()


class _Member(NamedTuple):
    """A member from `start`, which is that of its key, if it has one. `comma`: the place of the one after it, or -1."""

    start: int
    key: str | None
    node: _Node
    comma: int


def read_json(text: str) -> object:
    """The value of the file; an empty one is an empty object. UsageError with the line."""
    root = _parse(text)
    return {} if root is None else root.value


def put_json(text: str, keys: Sequence[str], value: object) -> list[TextEdit]:
    """The edits that set `value` at the end of the keys. "+" as the last key appends to a list. Every step of the keys
    exists with the right type, or does not exist."""
    root, newline = _parse(text), "\r\n" if "\r\n" in text else "\n"
    if root is None:
        lead = "" if not text or text.endswith("\n") else newline
        return [TextEdit(len(text), lead + _render(nested(keys, value), "  ", "", newline) + newline)]
    unit, node, left = _indent_unit(text, root), root, list(keys)
    while left and left[0] != "+" and (place := _place(node, left[0])) is not None:
        node, left = node.members[place].node, left[1:]
    key = None if isinstance(node.value, list) else json.dumps(left[0], ensure_ascii=False) + ": "
    made = nested(left[1:], value)
    if not node.members:
        return _fill(text, node, key, made, unit, newline)
    last = node.members[-1]
    end = last.node.end if last.comma < 0 else last.comma + 1
    if "\n" not in text[node.start : node.members[0].start]:
        item = (key or "") + json.dumps(made, ensure_ascii=False)
        return [TextEdit(end, f", {item}" if last.comma < 0 else f" {item},")]
    indent = _indent(text, last.start)
    found = _COMMENTS_OF_LINE.match(text, end)
    after = found.end() if found else end
    item = newline + indent + (key or "") + _render(made, unit, indent, newline)
    if last.comma >= 0:
        return [TextEdit(after, item + ",")]
    return [TextEdit(end, "," + item)] if after == end else [TextEdit(end, ","), TextEdit(after, item)]


def cut_json(text: str, path: Sequence[str | int], *, with_space: bool = True) -> list[TextEdit]:
    """The edits that take out the member at the end of `path`, with its comma and, `with_space`, the white space before
    it."""
    node = _parse(text)
    assert node is not None
    for step in path[:-1]:
        node = node.members[_step(node, step)].node
    place = _step(node, path[-1])
    member, before = node.members[place], node.members[place - 1] if place else None
    start, end = member.start, member.node.end
    while with_space and text[start - 1] in _SPACE:
        start -= 1
    if member.comma < 0:
        own = TextEdit(start, length=end - start)
        return [TextEdit(before.comma, length=1), own] if before else [own]
    if text[end : member.comma].strip(_SPACE):  # a comment of the user's
        return [TextEdit(start, length=end - start), TextEdit(member.comma, length=1)]
    return [TextEdit(start, length=member.comma + 1 - start)]


def nested(keys: Sequence[str], value: object) -> object:
    """{"a": {"b": [value]}} for ("a", "b", "+")."""
    for key in reversed(keys):
        value = [value] if key == "+" else {key: value}
    return value


def _fill(text: str, node: _Node, key: str | None, value: object, unit: str, newline: str) -> list[TextEdit]:
    """The first member of an object or list that has none."""
    inner = text[node.start + 1 : node.end - 1]
    own = inner.rstrip(_SPACE)  # comments
    outer = _indent(text, node.start)
    item = newline + outer + unit + (key or "") + _render(value, unit, outer + unit, newline)
    return [TextEdit(node.start + 1 + len(own), item + ("" if "\n" in inner[len(own) :] else newline + outer))]


def _render(value: object, unit: str, indent: str, newline: str) -> str:
    """JSON over several lines, the first one without indentation."""
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + indent)


def _indent(text: str, at: int) -> str:
    """The white space that the line of `at` begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_unit(text: str, root: _Node) -> str:
    """What one level is indented by: as the first member is."""
    return (_indent(text, root.members[0].start) if root.members else "") or "  "


def _place(node: _Node, key: str) -> int | None:
    """Where the member of that key is; of several the last one, which readers take. None: nowhere."""
    return max((i for i, member in enumerate(node.members) if member.key == key), default=None)


def _step(node: _Node, step: str | int) -> int:
    place = step if isinstance(step, int) else _place(node, step)
    assert place is not None
    return place


# ------------------------------------------------------------ reading


def _parse(text: str) -> _Node | None:
    """None for a file of blanks and comments alone."""
    start = _after_blank(text, 0)
    if start == len(text):
        return None
    try:
        root = _value(text, start)
    except RecursionError:
        raise UsageError("it is nested too deeply") from None
    if (end := _after_blank(text, root.end)) != len(text):
        raise _wrong(text, end, "more after the end")
    return root


def _value(text: str, at: int) -> _Node:
    if text[at : at + 1] in ("{", "["):
        return _container(text, at)
    found = _SCALAR.match(text, at)
    if not found:
        raise _wrong(text, at, "no value")
    try:
        return _Node(at, found.end(), json.loads(found[0]))
    except ValueError:
        raise _wrong(text, at, "no value") from None


def _container(text: str, start: int) -> _Node:
    is_list, members = text[start] == "[", list[_Member]()
    closer, at = "]" if is_list else "}", _after_blank(text, start + 1)
    while text[at : at + 1] != closer:
        if members and members[-1].comma < 0:
            raise _wrong(text, at, f"neither a comma nor {closer}")
        begin, key = at, None
        if not is_list:
            key, at = _key(text, at)
        node = _value(text, at)
        at = _after_blank(text, node.end)
        comma = at if text[at : at + 1] == "," else -1
        members.append(_Member(begin, key, node, comma))
        at = at if comma < 0 else _after_blank(text, at + 1)
    plain = [member.node.value for member in members]
    value = plain if is_list else dict(zip([str(member.key) for member in members], plain, strict=True))
    return _Node(start, at + 1, value, tuple(members))


def _key(text: str, at: int) -> tuple[str, int]:
    """(the key, where its value begins)"""
    key = _value(text, at)
    if not isinstance(key.value, str):
        raise _wrong(text, at, "no key in double quotes")
    at = _after_blank(text, key.end)
    if text[at : at + 1] != ":":
        raise _wrong(text, at, "no colon after a key")
    return key.value, _after_blank(text, at + 1)


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _wrong(text: str, at: int, what: str) -> UsageError:
    return UsageError(f"line {text.count(chr(10), 0, at) + 1} has {what}")
