"""`$'…'`: the one quote whose escapes bash decodes (manual, "ANSI-C Quoting")."""

from __future__ import annotations

import re

from readcache.shell.syntax import Refused

_ESCAPE = re.compile(
    r"""\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(.)|(.))""", re.DOTALL
)
_SIMPLE = {"n": 10, "t": 9, "a": 7, "b": 8, "e": 27, "E": 27, "f": 12, "r": 13, "v": 11}


def read_ansi_c(source: str, pos: int) -> tuple[str, int]:
    r"""The text of a `$'…'` whose inside begins at `pos`, and where it ends.

    Octal and hex escapes are bytes; bytes that are not UTF-8 become surrogates. A NUL ends the text, as in bash.
    """
    end = pos
    while not source.startswith("'", end):
        if end >= len(source):
            raise Refused("unclosed $'")
        end += 2 if source[end] == "\\" else 1
    inside = source[pos:end]
    if "\\" not in inside:
        return inside, end + 1
    out = bytearray()
    at = 0
    for found in _ESCAPE.finditer(inside):
        out += inside[at : found.start()].encode("utf-8", "surrogateescape")
        at = found.end()
        value = _escaped(found)
        if value == b"\0":
            return out.decode("utf-8", "surrogateescape"), end + 1
        out += value
    out += inside[at:].encode("utf-8", "surrogateescape")
    return out.decode("utf-8", "surrogateescape"), end + 1


def _escaped(found: re.Match[str]) -> bytes:
    octal, byte, short, long, control, other = found.groups()
    if octal or byte:
        return bytes([int(octal, 8) & 0xFF if octal else int(byte, 16)])
    if short or long:
        return chr(int(short or long, 16)).encode("utf-8")
    if control:
        first, *rest = control.encode("utf-8", "surrogateescape")
        return bytes([0x7F if control == "?" else first & 0x1F, *rest])
    if other in _SIMPLE:
        return bytes([_SIMPLE[other]])
    if other in "\\'\"?":
        return bytes([ord(other)])
    return bytes(found.group().encode("utf-8", "surrogateescape"))
