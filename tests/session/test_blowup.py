"""What others write into commands, files and messages may have any shape: its length alone says how long it takes."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from readcache import Session
from readcache.core.judging.marker import find_markers, find_possible
from readcache.core.judging.notices import find_truncations
from readcache.core.model.text import session_tag
from readcache.core.shell.read import read_command
from readcache.log.store.protocol import MemoryStore
from tests.helpers.adversaries import CASES, beside_a_loop, per_doubling

# Quadratic work takes 4 times as long for a doubling; the machine may be busy with something else.
MOST = 3.0


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_twice_as_much_takes_about_twice_as_long(name: str) -> None:
    assert any(per_doubling(CASES[name])[2] < MOST for _ in range(4)), name


def _same_lines_in_any_order() -> None:
    words, order = [str(n) * 2 for n in range(1000, 1500)], random.Random(1)
    session = Session("/r", session_id="s", store=MemoryStore())
    session.observe("cat big.csv", "".join(f"{order.choice(words)}\n" for _ in range(200_000)))
    session.observe("cat small.csv", "".join(f"{word}\n" for word in order.sample(words * 8, 4_000)))


OPEN = f"[UNCHANGED {session_tag('s')}.1: "
FOR_EVER: dict[str, Callable[[], object]] = {  # each took from ten seconds to longer than anybody waited
    "classes in a sed address that is never closed": lambda: read_command(f"sed -n '/{'[a]' * 300}' f", "/r"),
    "blanks in a sed script": lambda: read_command(f"sed -n '1p{' ' * 5_000}x' f", "/r"),
    "negations": lambda: read_command("! " * 4_000 + "cat f", "/r"),
    "a heredoc of continued lines": lambda: read_command("cat <<A\n" + "x\\\n" * 300_000 + "A\n", "/r"),
    "tildes": lambda: read_command("cat " + "a" * 100_000 + "~" * 100_000, "/r"),
    "digits in a line that was cut": lambda: find_truncations(["x lines omitted " + "1" * 100_000]),
    "open markers": lambda: find_markers(OPEN * 20_000, session_tag("s")),
    "the lines of a source in any order": _same_lines_in_any_order,
    "brackets behind open markers": lambda: list(find_possible(OPEN * 5_000 + "]" * 90_000, session_tag("s"))),
}


@pytest.mark.parametrize("name", FOR_EVER)
def test_what_once_took_for_ever_is_soon_done(name: str) -> None:
    assert beside_a_loop(FOR_EVER[name]) < 40
