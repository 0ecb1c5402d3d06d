"""The README's example: a file, the commands of an agent, and what a session really answers to them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from readcache import Outcome, Policy, Session
from readcache.model.text import split_lines

FILE = "shop.py"
CONTENT = '''\
"""A shop's orders: what they cost and what is in stock."""

from dataclasses import dataclass

TAX = 0.19


@dataclass(frozen=True)
class Item:
    """One line of an order: what, how many, at which price."""

    name: str
    count: int
    price: float


def net(items: list[Item]) -> float:
    """The sum of an order before tax."""
    return sum(item.count * item.price for item in items)


def total(items: list[Item]) -> float:
    """What the customer pays."""
    return round(net(items) * (1 + TAX), 2)


def missing(items: list[Item], stock: dict[str, int]) -> list[str]:
    """The names of the items that are not there in full."""
    return [item.name for item in items if stock.get(item.name, 0) < item.count]


def reserve(items: list[Item], stock: dict[str, int]) -> None:
    """Takes the items out of the stock; ValueError when one is missing."""
    if names := missing(items, stock):
        raise ValueError(f"not in stock: {', '.join(names)}")
    for item in items:
        stock[item.name] -= item.count
'''
TEST_FILE = "test_shop.py"
TEST_CONTENT = """\
from shop import Item, total


def test_total() -> None:
    assert total([Item("tea", 2, 10.0)]) == 21.4
"""
COMMANDS = (
    f"cat {FILE}",
    f"sed -n '8,30p' {FILE}",
    f"sed -n '8,30p' {FILE}",
    f"sed -n '18,38p' {FILE}; cat {TEST_FILE}",
    f"sed -i 's/0.19/0.07/' {FILE}",
    f"cat {FILE}",
)
SESSION = "readme"  # its id decides the tag in the markers
# Lines of an answer that the README shows: the ends are enough to see what came.
MOST_LINES = 7
HEAD, TAIL = 3, 1


def transcript() -> str:
    """The commands and the answers, as a fenced block."""
    with tempfile.TemporaryDirectory() as directory:
        write_project(Path(directory))
        with Session(directory, session_id=SESSION, policy=Policy(), clock=lambda: 0.0) as session:
            steps = [_step(session, command) for command in COMMANDS]
    return "```text\n" + "\n".join(steps) + "```\n"


def write_project(directory: Path) -> None:
    """The files that the examples are about."""
    (directory / FILE).write_text(CONTENT, encoding="utf-8")
    (directory / TEST_FILE).write_text(TEST_CONTENT, encoding="utf-8")


def _step(session: Session, command: str) -> str:
    reply = session.run(command)
    verdict = f"{reply.outcome.name}, {reply.reason.value}"
    if reply.outcome is not Outcome.FULL:
        verdict += f", {reply.tokens_saved} tokens saved"
    lines = split_lines(reply.text)
    markers = [at for at, line in enumerate(lines) if session.markers_in(line)]
    return "".join(line + "\n" for line in (f"$ {command}", *shorten(lines, markers), f"=> {verdict}"))


def shorten(lines: list[str], markers: Sequence[int]) -> list[str]:
    """Without the middle of a long stretch of file lines; those at the indexes `markers` are always there."""
    out: list[str] = []
    low = 0
    for at in (*markers, len(lines)):
        shown = lines[low:at]
        if len(shown) > MOST_LINES:
            shown = [*shown[:HEAD], f"  ⋮  {len(shown) - HEAD - TAIL} more lines", *shown[-TAIL:]]
        out += [*shown, *lines[at : at + 1]]
        low = at + 1
    return out
