"""Which lines a sed script prints. Only `p`, `d` and `q` with line numbers are worked out; the rest is named."""

from __future__ import annotations

import re
from dataclasses import dataclass

from readcache.model.claims import Range
from readcache.shell import streams
from readcache.shell.arguments import CannotTell
from readcache.shell.streams import Claims

_SKIP = re.compile(r"[\s;]*")
_ADDRESS = re.compile(r"(?P<line>\d+)(?![~\d])|\$|\d+~\d+|/(?:\\.|\[[^\]]*\]|[^/\\])*/[IM]*")
_SECOND = re.compile(r"[+~]\d+|" + _ADDRESS.pattern.replace("?P<line>", ""))


@dataclass(frozen=True, slots=True)
class _Address:
    """`1,5`, `3`, `7,$`, `2,+3`; `fuzzy` when it cannot be told from the line number."""

    first: int
    last: int | None
    negated: bool = False
    fuzzy: bool = False

    def holds(self, line: int) -> bool:
        inside = self.first <= line and (self.last is None or line <= self.last)
        return inside != self.negated


@dataclass(frozen=True, slots=True)
class _Command:
    conditions: tuple[_Address, ...]
    letter: str

    def holds(self, line: int) -> bool:
        return all(address.holds(line) for address in self.conditions)


def sed_output(claims: Claims, script: str, *, quiet: bool) -> Claims:
    """What `sed script` (with -n when `quiet`) makes of a stream."""
    name = f"sed {'-n ' if quiet else ''}{script}"
    compact = re.sub(r"[\s;]", "", script)
    if (compact == "$p" and quiet) or (compact == "$!d" and not quiet):
        return streams.tail(claims, 1)
    try:
        commands = _parse(script)
    except CannotTell:
        return streams.vary(claims, name)
    if any(address.fuzzy for command in commands for address in command.conditions):
        return streams.unknown(claims, gaps=True)
    positions = _positions(commands, quiet)
    return streams.unknown(claims, gaps=True) if positions is None else streams.select_lines(claims, positions)


def _positions(commands: list[_Command], quiet: bool) -> tuple[Range, ...] | None:
    def prints(line: int) -> tuple[int, bool]:
        count = 0
        for command in commands:
            if not command.holds(line):
                continue
            if command.letter == "p":
                count += 1
            elif command.letter == "d":
                return count, False
            else:
                return count + (not quiet), True
        return count + (not quiet), False

    bounds: list[int] = []
    for command in commands:
        for address in command.conditions:
            bounds += (address.first - 1, address.first, address.last or address.first)
    return streams.piecewise(bounds, prints)


def _parse(script: str) -> list[_Command]:
    """The script's commands. Raises CannotTell when it has others than p, d, q and blocks of them."""
    out: list[_Command] = []
    blocks: list[tuple[_Address, ...]] = [()]
    at = _SKIP.match(script).end()  # type: ignore[union-attr]
    while at < len(script):
        if script[at] == "}":
            blocks.pop()
            at += 1
        else:
            address, at = _address(script, at)
            letter = script[at : at + 1]
            at += 1
            conditions = (*blocks[-1], *((address,) if address else ()))
            if letter == "{":
                blocks.append(conditions)
            elif letter in ("p", "d", "q"):
                out.append(_Command(conditions, letter))
            else:
                raise CannotTell
        if not blocks:
            raise CannotTell
        at = _SKIP.match(script, at).end()  # type: ignore[union-attr]
    return out


def _address(script: str, at: int) -> tuple[_Address | None, int]:
    found = _ADDRESS.match(script, at)
    if found is None:
        return None, at
    second: str | None = None
    at = found.end()
    more = re.compile(r"\s*,\s*").match(script, at)
    if more:
        end = _SECOND.match(script, more.end())
        if end is None:
            raise CannotTell
        second, at = end.group(), end.end()
    bang = re.compile(r"\s*(!?)\s*").match(script, at)
    negated = bool(bang and bang.group(1))
    return _bounds(found.group("line"), second, negated), bang.end() if bang else at


def _bounds(line: str | None, second: str | None, negated: bool) -> _Address:
    """The address `line,second`. An end before the start stands for the start alone (sed's own rule)."""
    if not line or int(line) == 0:
        return _Address(1, None, negated, fuzzy=True)
    first = int(line)
    if second is None:
        return _Address(first, first, negated)
    if second == "$":
        return _Address(first, None, negated)
    if second[0] == "+":
        return _Address(first, first + int(second[1:]), negated)
    if second.isdigit():
        return _Address(first, max(first, int(second)), negated)
    return _Address(first, None, negated, fuzzy=True)
