"""Numbers beside each other, each with a bar: as a table, so that they can be read aloud and copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from readcache.report.page.markup import escaped


class Bar(NamedTuple):
    """A cell: text with a note, and a bar of `length` (a share of the longest) below it. `kind`: its colour."""

    text: str
    length: float | None = None
    note: str = ""
    kind: str = "left"


Row = Sequence[Bar | str]


def bar_table(heads: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """The first cell of a row is its head."""
    yield "<table><thead><tr>"
    yield "".join(f'<th scope="col">{escaped(head)}</th>' for head in heads)
    yield "</tr></thead><tbody>"
    for first, *rest in rows:
        yield f'<tr><th scope="row">{_cell(first)}</th>{"".join(f"<td>{_cell(cell)}</td>" for cell in rest)}</tr>'
    yield "</tbody></table>\n"


def lengths(values: Sequence[float]) -> list[float]:
    """Of the bars for these values, none of them below 0."""
    most = max(values, default=0)
    return [max(0.0, value) / most if most > 0 else 0.0 for value in values]


def _cell(cell: Bar | str) -> str:
    if isinstance(cell, str):
        return escaped(cell)
    note = f" <small>{escaped(cell.note)}</small>" if cell.note else ""
    bar = f'<i class="bar {cell.kind}" style="--length:{cell.length:.3f}"></i>' if cell.length is not None else ""
    return escaped(cell.text) + note + bar
