"""Which lines an awk program prints, when it goes by NR; anything else is only named."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from readcache.shell import streams
from readcache.shell.arguments import CannotTell
from readcache.shell.streams import Claims

_RULE = re.compile(
    r"[\s;]*(?P<pattern>(?:/(?:\\.|[^/\\])*/|\"(?:\\.|[^\"\\])*\"|[^{};\n/\"])*)(?:\{(?P<action>[^{}]*)\})?"
)
_ATOM = re.compile(r"(?:NR|FNR)(==|!=|>=|<=|>|<)(\d+)|(\d+)(==|!=|>=|<=|>|<)(?:NR|FNR)")
_RANGE = re.compile(r"F?NR==(\d+),F?NR==(\d+)")
_IF = re.compile(r"if\s*\((?P<pattern>[^()]*(?:\([^()]*\)[^()]*)*)\)\s*(?P<action>.*)", re.DOTALL)
_PRINTF = re.compile(r'printf\s*\(?\s*"%[0 ]?\d*[di](?P<sep>[^%"]+)%s\\n"\s*,\s*F?NR\s*,\s*\$0\s*\)?')
_PRINT = re.compile(r'print\s*\(?\s*F?NR\s*(?:,|"(?P<sep>[^"]+)")\s*\$0\s*\)?')
_FLIP = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "==": "==", "!=": "!="}
_ESCAPES = {r"\t": "\t", r"\"": '"', r"\\": "\\"}

Test = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class _Rule:
    test: Test | None  # None: cannot be told from the line number
    bounds: tuple[int, ...]
    does: str  # print, exit or next
    sep: str | None = None  # print: numbers in front, with this after them


def awk_output(claims: Claims, program: str, variables: dict[str, str]) -> Claims:
    """What `awk program`, with these `-v` variables, makes of a stream."""
    name = f"awk {program}"
    for variable, value in variables.items():
        program = re.sub(rf"\b{re.escape(variable)}\b", lambda _, value=value: value, program)  # type: ignore[misc]
    try:
        rules = _parse(program)
        seps = {rule.sep for rule in rules if rule.does == "print"}
        if len(seps) != 1:
            raise CannotTell
    except CannotTell:
        return streams.vary(claims, name)
    sep = seps.pop()
    if sep is not None:
        claims = streams.number(claims, sep, name)
    if any(rule.test is None for rule in rules):
        return streams.unknown(claims, gaps=True)
    positions = streams.piecewise((b for rule in rules for b in rule.bounds), lambda line: _prints(rules, line))
    return streams.unknown(claims, gaps=True) if positions is None else streams.select(claims, positions)


def _prints(rules: list[_Rule], line: int) -> tuple[int, bool]:
    count = 0
    for rule in rules:
        if rule.test is None or not rule.test(line):
            continue
        if rule.does == "exit":
            return count, True
        if rule.does == "next":
            break
        count += 1
    return count, False


def _parse(program: str) -> list[_Rule]:
    out: list[_Rule] = []
    at = 0
    while program[at:].strip(" \t\n;"):
        found = _RULE.match(program, at)
        if found is None or found.end() == at:
            raise CannotTell
        at = found.end()
        pattern, action = found.group("pattern").strip(), found.group("action")
        if not pattern and action is None:
            raise CannotTell
        test, bounds = _pattern(pattern)
        statements = ["print"] if action is None else [s.strip() for s in re.split(r"[;\n]", action) if s.strip()]
        for statement in statements:
            out.append(_statement(statement, test, bounds))
    return out


def _statement(text: str, test: Test | None, bounds: tuple[int, ...]) -> _Rule:
    guarded = _IF.fullmatch(text)
    if guarded:
        inner, more = _pattern(guarded.group("pattern").strip())
        both = None if test is None or inner is None else (lambda n: test(n) and inner(n))
        return _statement(guarded.group("action").strip(), both, (*bounds, *more))
    if text in ("exit", "next"):
        return _Rule(test, bounds, text)
    if text in ("print", "print $0", "print($0)"):
        return _Rule(test, bounds, "print")
    found = _PRINTF.fullmatch(text) or _PRINT.fullmatch(text)
    if found is None:
        raise CannotTell
    return _Rule(test, bounds, "print", _unescape(found.group("sep") or " "))


def _unescape(text: str) -> str:
    text = re.sub(r"\\.", lambda found: _ESCAPES.get(found.group(), "\n"), text)
    if "\n" in text or text[0].isdigit():
        raise CannotTell
    return text


def _pattern(text: str) -> tuple[Test | None, tuple[int, ...]]:
    """A test of the line number, and where it can change; the test is None when there is more to it."""
    if text.startswith(("BEGIN", "END", "function")):
        raise CannotTell
    text = re.sub(r"\s", "", text)
    if not text:
        return (lambda _: True), ()
    span = _RANGE.fullmatch(text)
    if span:
        first, last = int(span.group(1)), int(span.group(2))
        # An end before the start never comes: awk then prints to the end of its input.
        return (lambda n: first <= n and (n <= last or last < first)), (first - 1, last)
    if any("||" in group for group in re.findall(r"\(([^()]*)\)", text)) and "&&" in text:
        return None, ()
    alternatives: list[list[tuple[str, int]]] = []
    for alternative in re.sub(r"[()]", "", text).split("||"):
        atoms = [_ATOM.fullmatch(atom) for atom in alternative.split("&&")]
        if None in atoms:
            return None, ()
        alternatives.append([_comparison(atom) for atom in atoms if atom])
    bounds = tuple(b for atoms in alternatives for _, value in atoms for b in (value - 1, value))
    return (lambda n: any(all(_compare(n, op, value) for op, value in atoms) for atoms in alternatives)), bounds


def _comparison(atom: re.Match[str]) -> tuple[str, int]:
    op, value, turned, flipped = atom.groups()
    return (op, int(value)) if op else (_FLIP[flipped], int(turned))


def _compare(line: int, op: str, value: int) -> bool:
    return {
        "==": line == value,
        "!=": line != value,
        ">=": line >= value,
        "<=": line <= value,
        ">": line > value,
        "<": line < value,
    }[op]
