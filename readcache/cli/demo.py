"""`readcache demo`: an agent's commands on sample files, and the reply to each with its reason."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from readcache import Outcome, Session
from readcache.cli.output import say
from readcache.core.model.errors import ReadcacheError
from readcache.core.model.text import split_lines
from readcache.process.settings import Settings

SHOP = '''\
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
TEST = """\
from shop import Item, total


def test_total() -> None:
    assert total([Item("tea", 2, 10.0)]) == 21.4
"""
SAMPLE = {"shop.py": SHOP, "test_shop.py": TEST}
COMMANDS = (
    "cat shop.py",
    "sed -n '8,29p' shop.py",
    "sed -n '8,29p' shop.py",
    "sed -n '18,38p' shop.py; cat test_shop.py",
    "sed -i.bak 's/0.19/0.07/' shop.py && cat shop.py",  # BSD's sed needs the suffix
    "cat shop.py",
)
SESSION_ID = "demo"  # the tag in the markers is made from it
MOST_LINES, HEAD_LINES, TAIL_LINES = 4, 1, 1  # lines printed of one output; of a longer one, only its head and tail
INTRODUCTION = """\
An agent's commands, and what the agent sees of each. `=>` says what readcache
made of the output, and why. `⋮` shortens this page, not what the agent sees.
"""
NEXT = """\
Next: `readcache init claude-code` (codex, copilot, gemini, kilo, opencode, pi) switches it on;
`readcache replay` says what your own conversations would have been spared."""


def demo_command(options: argparse.Namespace, __: Settings) -> int:
    """Print the demonstration. The sample is in a temporary directory, and the session in memory. Raise ReadcacheError
    if the sample cannot be kept in `--keep`."""
    if options.keep:
        _keep_sample(Path(options.keep))
    _say_all(INTRODUCTION)
    # If the shims of a sandbox are active, the sandbox's session must not record this.
    env = {**os.environ, "READCACHE": "off"}
    with tempfile.TemporaryDirectory(prefix="readcache-") as root, Session(root, session_id=SESSION_ID) as session:
        write_sample(Path(root))
        for command in COMMANDS:
            _show(session, command, env)
        counts = session.stats()
    printed, shown, saved = (counts[name] for name in ("output_chars", "shown_chars", "tokens_saved"))
    say(f"{len(COMMANDS)} commands printed {printed:,} characters. The agent was sent {shown:,},")
    _say_all(f"and has every line in view. That saves {saved} tokens, without those it asked for again.\n\n{NEXT}")
    if options.keep:
        say(f"The sample is in {options.keep}: the examples of docs/python.md run there.")
    return 0


def _keep_sample(directory: Path) -> None:
    """Write the sample into a directory of the user. Raise ReadcacheError if it cannot be written, or if another file
    has one of its names."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in SAMPLE.items():
            path = directory / name
            if path.exists() and path.read_text(encoding="utf-8", errors="replace") != text:
                raise ReadcacheError(f"{path} exists and is not the sample: give another directory")
        write_sample(directory)
    except OSError as error:
        raise ReadcacheError(f"cannot write the sample into {directory}: {error.strerror}; give another one") from None


def write_sample(directory: Path) -> None:
    """Write the files `shop.py` and `test_shop.py`."""
    for name, text in SAMPLE.items():
        (directory / name).write_text(text, encoding="utf-8")


def _say_all(text: str) -> None:
    for line in text.split("\n"):
        say(line)


def _show(session: Session, command: str, env: dict[str, str]) -> None:
    reply = session.run(command, env=env)
    saved = "" if reply.outcome is Outcome.FULL else f", {reply.tokens_saved} tokens saved"
    verdict = f"=> {reply.outcome.name} ({reply.reason.value}){saved}: {reply.reason.why}"
    for line in (f"$ {command}", *shorten(split_lines(reply.text)), verdict, ""):
        say(line)


def shorten(lines: Sequence[str]) -> list[str]:
    """Return the lines. A long text loses its middle, because its ends show enough."""
    gone = len(lines) - HEAD_LINES - TAIL_LINES
    if len(lines) <= MOST_LINES:
        return [*lines]
    return [*lines[:HEAD_LINES], f"  ⋮  {gone} more lines", *lines[-TAIL_LINES:]]
