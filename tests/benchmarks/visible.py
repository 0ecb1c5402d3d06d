"""What stands before an agent, line by line: the judge of what was left out of its sight.

It knows texts alone, nothing of how anybody found a line. Several contestants are judged on one conversation: each
line is kept once, and for each contestant the places of those that it left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

# Numbers in front of lines: `cat -n` and `nl` (tab), Claude Code ("→"), SWE-agent and `grep -n` (":", "-"), OpenHands
# ("|"), "12. ", awk's NR (a blank). With and without the blank behind, where that may be part of the line.
_NUMBER = re.compile(r"[ \t]*\d{1,7}(?:\t|→|[:|.-] | |[:|.-])")
_HIT = re.compile(r"[^\s:][^:]*?(?::\d{1,7}:|-\d{1,7}-)")  # `src/app.py:12:` and, around it, `src/app.py-13-`
_HUNK = re.compile(r"@@ -\d")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a text."""

    text: str
    bare: tuple[str, ...]  # the text, and what is left of it without what may stand in front of a line
    shows: tuple[
        str, ...
    ]  # the same, and what a diff says was added or taken away: its mark is news, the rest is shown


@lru_cache(maxsize=200_000)
def _bare(text: str) -> tuple[str, ...]:
    """The text, and without a number or a search's path and number in front. Blanks stay."""
    found = [text]
    for pattern in (_NUMBER, _HIT):
        if front := pattern.match(text):
            found.append(text[front.end() :])
            if front[0].endswith(" "):
                found.append(text[front.end() - 1 :])
    return tuple(dict.fromkeys(found))


def read_lines(text: str) -> list[Line]:
    """Lines of a text; only `\\n` ends one. Behind a final newline stands an empty one, which a fold may take along."""
    out: list[Line] = []
    in_diff = False
    for line in text.split("\n"):
        bare = shows = _bare(line)
        if in_diff and line[:1] in ("+", "-", " "):
            shows = (*bare, line[1:])
            bare = shows if line[0] == " " else bare
        in_diff = in_diff or _HUNK.match(line) is not None
        out.append(Line(line, bare, shows))
    return out


@dataclass(frozen=True)
class Finding:
    """Of lines that were left out in one place, in characters with their newlines."""

    never: int  # of lines that stand nowhere before, also not behind other numbers
    otherwise: int  # of lines that stand there with something else in front of them, or nothing
    index: int | None  # where all of them stand in one piece, if they do anywhere


_BETWEEN = Line("", (), ())


class Conversation:
    """The texts of one epoch, in the order in which the agent came to have them."""

    def __init__(self) -> None:
        self._lines: list[Line] = []  # with one that shows nothing in front of each text
        self._indexes: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, lines: Sequence[Line]) -> int:
        """Puts a text behind the others; the place of its first line."""
        self._lines.append(_BETWEEN)
        first = len(self._lines)
        for index, line in enumerate(lines, first):
            for form in line.shows:
                self._indexes[form].append(index)
        self._lines += lines
        return first

    def text(self, index: int) -> str:
        """The line at a place."""
        return self._lines[index].text

    def find(self, lines: Sequence[Line], hidden: set[int]) -> Finding:
        """What of these lines stands before a reader from whom the lines at the places `hidden` were withheld."""
        never = otherwise = 0
        for line in lines:
            shown = [index for form in line.bare for index in self._indexes.get(form, ()) if index not in hidden]
            if not shown:
                never += len(line.text) + 1
            elif not any(self._lines[index].text == line.text for index in shown):
                otherwise += len(line.text) + 1
        return Finding(never, otherwise, None if never else self._mapped(lines, hidden))

    def _mapped(self, lines: Sequence[Line], hidden: set[int]) -> int | None:
        """The first place where all of the lines stand one after another."""
        indexes = [{index for form in line.bare for index in self._indexes.get(form, ())} - hidden for line in lines]
        rarest = min(range(len(lines)), key=lambda at: len(indexes[at]))
        for start in sorted(index - rarest for index in indexes[rarest]):
            if all(start + at in there for at, there in enumerate(indexes)):
                return start
        return None
