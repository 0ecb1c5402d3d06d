"""The JSON of a transcript's file, as loaders get it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from readcache.transcripts.records import Damage

SAMPLE = 50  # objects of a file that are looked at to find out its format: hosts begin with lines of their own


@dataclass(slots=True)
class Content:
    """The JSON objects of a file: one on each line, or the members of one list. `sample`: the first, with their lines;
    `rest`: those after them."""

    path: str
    sample: list[tuple[int, dict[str, Any]]]
    rest: Iterable[tuple[int, dict[str, Any]]] = ()
    damage: Damage = field(default_factory=Damage)
    line: int = 1  # that was handed out last

    def objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """(line, object) of each line. Once."""
        for line, value in chain(self.sample, self.rest):
            self.line = line
            yield line, value

    def place(self, line: int = 1) -> str:
        """For people: the file and the line."""
        return f"{self.path}:{line}"
