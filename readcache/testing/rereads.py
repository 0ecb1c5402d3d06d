"""Ways of reading a file, and of reading it again. Each pair of ways is one cell, with a file of its own.

`Conformance` runs every cell with the host, and counts the re-reads that its model was sent shortened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from readcache.testing.hosts import Bash, Read, ToolUse

LINES = 60
_PART, _HEAD = (16, 55), 45
_AT_ONCE = 12  # calls in a message
_AGAIN = 1 / 3  # the largest share of the visible lines that may be repeated, as around a gap of a few lines

# Name -> (the call for a path, the lines that it shows: 1-based, inclusive).
WAYS: Mapping[str, tuple[Callable[[str], ToolUse], tuple[int, int]]] = {
    "read": (Read, (1, LINES)),
    "part": (lambda path: Read(path, *_PART), _PART),
    "cat": (lambda path: Bash(f"cat {path}"), (1, LINES)),
    "sed": (lambda path: Bash(f"sed -n '{_PART[0]},{_PART[1]}p' {path}"), _PART),
    "head": (lambda path: Bash(f"head -n {_HEAD} {path}"), (1, _HEAD)),
    "search": (lambda path: Bash(f"grep -n compute {path}"), (1, LINES)),
}
# Name -> the function that makes a file's text from its lines.
FORMS: Mapping[str, Callable[[Sequence[str]], str]] = {
    "plain": lambda lines: "\n".join(lines) + "\n",
    "no-newline-at-its-end": "\n".join,
    "blank-lines": lambda lines: "".join(f"{line}\n\n" if n % 7 == 6 else f"{line}\n" for n, line in enumerate(lines)),
    "blank-lines-at-its-end": lambda lines: "\n".join(lines) + "\n\n\n",
}


class ReadAgain(NamedTuple):
    """A file `name`.py, the call that shows it first, and the call that reads it again."""

    name: str
    text: str
    first: ToolUse
    again: ToolUse
    in_view: frozenset[str]  # the lines of the second call that the first call showed

    def is_shortened(self, result: str) -> bool:
        """Return True if a result of the second call repeats at most a third of the visible lines."""
        return sum(line in result for line in self.in_view) <= _AGAIN * len(self.in_view)


def cells(form: str, kinds: frozenset[type]) -> list[ReadAgain]:
    """Return a cell for each pair of ways, if the host has calls of both kinds."""
    out = []
    for (first, (show, before)), (again, (repeat, after)) in product(WAYS.items(), repeat=2):
        name = f"{first}_{again}"
        text = FORMS[form]([f"{name}_{n} = compute({n * 7919 % 1000}, 'value')" for n in range(1, LINES + 1)])
        in_view = _shown(text, *before) & _shown(text, *after)
        out.append(ReadAgain(name, text, show(f"{name}.py"), repeat(f"{name}.py"), in_view))
    return [cell for cell in out if {type(cell.first), type(cell.again)} <= kinds]


def together(calls: Sequence[ToolUse]) -> list[tuple[ToolUse, ...]]:
    """Return the calls as steps of several calls each, because starting a turn takes the most time in most hosts."""
    return [tuple(calls[at : at + _AT_ONCE]) for at in range(0, len(calls), _AT_ONCE)]


def _shown(text: str, low: int, high: int) -> frozenset[str]:
    return frozenset(text.split("\n")[low - 1 : None if high == LINES else high]) - {""}
