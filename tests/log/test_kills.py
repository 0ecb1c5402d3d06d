"""Killed at every statement that a session gives to SQLite: what goes on counts on nothing that was not shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from readcache import Outcome, Session
from readcache.core.model.spec.marker import demand
from readcache.core.model.spec.world import World
from readcache.log.store.sqlite import SqliteStore
from tests.helpers.files import WATCHDOG, text

ROOT = Path(__file__).resolve().parents[2]
FILES = {name: text(of=name) * 2 for name in ("f", "g", "h")}
# What the harness does, in order. A restored section and a cut result are sources, too.
STEPS: list[tuple[str, ...]] = [
    ("read", "c1", "cat f"),
    ("read", "c2", "cat g"),
    ("read", "c3", "head -n 30 f"),
    ("settle", "c2", "15"),
    ("read", "c4", "cat g"),
    ("compacted", "c2", "c4"),
    ("read", "c5", "cat f"),
    ("wrote", "w1", "g"),
    ("read", "c6", "cat h"),
    ("read", "c7", "cat g h"),
    ("rewind", "c6"),
    ("read", "c8", "cat h"),
]
PROGRAM = """
    import json, os, sqlite3, sys
    from readcache import Session
    from tests.log.test_kills import STEPS, do

    path, last = sys.argv[1], int(sys.argv[2])
    given = 0

    class Killing(sqlite3.Connection):
        def execute(self, *words):
            self.count()
            return super().execute(*words)

        def executemany(self, *words):
            self.count()
            return super().executemany(*words)

        def count(self):
            global given
            given += 1
            if given == last:
                os.kill(os.getpid(), 9)

    connect = sqlite3.connect
    sqlite3.connect = lambda *words, **names: connect(*words, factory=Killing, **names)
    with Session("/w", session_id="s", store=path) as session:
        for step in STEPS:
            shown = do(session, step)
            print(json.dumps(shown), flush=True)
    print(given, flush=True)
"""


def printed(command: str) -> str:
    """What the command prints."""
    if command.startswith("head"):
        return "".join(FILES["f"].splitlines(True)[:30])
    return "".join(FILES[name] for name in command.split()[1:])


def do(session: Session, step: tuple[str, ...]) -> dict[str, Any]:
    """Tells the session of one step; what is then in the conversation: text by call id."""
    what, call_id, *rest = step
    if what == "read":
        return {call_id: session.observe(rest[0], printed(rest[0]), call_id=call_id).text}
    if what == "settle":
        shortened = "".join(printed("cat g").splitlines(True)[: int(rest[0])])
        session.settle(call_id, shortened)
        return {call_id: shortened}
    if what == "compacted":
        return dict(session.compacted(keep=step[1:]).rewrites)
    if what == "wrote":
        session.wrote(rest[0], call_id=call_id)
    else:
        session.rewind(call_id)
    return {}


def run(path: Path, last: int) -> list[str]:
    """The lines that the harness wrote until it was killed, at statement `last`, or ended."""
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(path), str(last)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=WATCHDOG)
    assert done.stderr == ""
    return done.stdout.splitlines()


def conversation(done: list[str]) -> tuple[dict[str, str], int]:
    """What stands in the conversation after these steps; how many there were."""
    shown: dict[str, str] = {}
    for step, line in zip(STEPS, done, strict=False):
        if step[0] == "compacted":
            shown = {name: text for name, text in shown.items() if name in step[1:]}
        elif step[0] == "rewind":
            shown = dict(list(shown.items())[: list(shown).index(step[1]) + 1])
        shown |= json.loads(line)
    return shown, min(len(done), len(STEPS))


def check_what_goes_on(path: Path, done: list[str]) -> tuple[int, int, int]:
    """The harness goes on with what it has: tells what it could not, and reads everything again. The reads that were
    omitted from, those that could have been, and the events that are there in the end."""
    shown, count = conversation(done)
    world = World()
    for call_id, result in shown.items():
        world.shown("main", call_id, result)
    omitted = 0
    with Session("/w", session_id="s", store=path) as session:
        if count < len(STEPS):  # the harness knows that this one was not taken
            tell_again(session, STEPS[count], world)
        for number, name in enumerate(FILES):
            reply = session.observe(f"cat {name}", FILES[name], call_id=f"later {number}")
            assert reply.full_text == FILES[name]
            demand(world.answered("main", reply, FILES[name]))
            omitted += reply.outcome is not Outcome.FULL
        assert session.stats()["calls"] >= 3
    store = SqliteStore(path)
    events = len(list(store.records("s")))
    store.close()
    assert events
    return omitted, count, events


def tell_again(session: Session, step: tuple[str, ...], world: World) -> None:
    """What the harness did to its conversation, and could not tell."""
    what, call_id, *_ = step
    if what == "settle":
        world.clipped("main", call_id, do(session, step)[call_id])
    elif what == "compacted":
        world.compacted("main", step[1:])
        for rewritten, text in do(session, step).items():
            world.clipped("main", rewritten, text)
    elif what == "rewind":
        do(session, step)
        world.rewound("main", call_id)


def statements(tmp_path: Path) -> int:
    """How many statements it is, to the end."""
    return int(run(tmp_path / "whole.db", 0)[-1])


def kills(tmp_path: Path, every: int) -> Iterator[tuple[int, int, int]]:
    for last in range(1, statements(tmp_path) + 1, every):
        path = tmp_path / f"{last}.db"
        yield check_what_goes_on(path, run(path, last))


def test_what_was_shown_before_a_kill_is_all_that_later_markers_name(tmp_path: Path) -> None:
    found = list(kills(tmp_path, 23))
    assert len(found) > 5
    assert any(omitted for omitted, *_ in found)


@pytest.mark.slow
def test_that_holds_for_a_kill_at_each_statement(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    found = list(kills(tmp_path, 1))
    record_property("kills", len(found))
    record_property("processes", len(found))
    record_property("calls", 3 * len(found))  # made afterwards, each proven
    record_property("events", sum(events for *_, events in found))
    record_property("omissions", sum(omitted for omitted, *_ in found))
    assert {count for _, count, _ in found} == set(range(len(STEPS) + 1))  # in each of them, and behind the last
    assert sum(omitted for omitted, *_ in found) > len(found) // 2
