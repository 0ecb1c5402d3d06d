"""Calls that overtake others: what was logged while a call was under way is not its source."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from readcache import Reply, Session
from readcache.core.model.reply import Reason
from readcache.log.store.protocol import MemoryStore
from tests.helpers.files import TEXT, WATCHDOG


class BlockingStore(MemoryStore):
    """A store that keeps other threads than its maker's waiting, as a crowd would: the second time that one comes, or
    the first time (`has_come`)."""

    def __init__(self, *, has_come: bool = False) -> None:
        super().__init__()
        self.has_come = has_come
        self.slow = threading.Event()  # set once that thread waits
        self.go = threading.Event()
        self.mine = threading.current_thread()

    def transaction(self) -> Any:
        if threading.current_thread() is not self.mine:
            if self.has_come:
                self.slow.set()
                assert self.go.wait(WATCHDOG)
            self.has_come = True
        return super().transaction()


DOORS: dict[str, Callable[[Session], object]] = {
    "run": lambda session: session.run("cat f", call_id="c1"),
    "arun": lambda session: asyncio.run(session.arun("cat f", call_id="c1")),
    "wrap": lambda session: session.wrap(lambda _: TEXT, call_id=lambda: "c1")("cat f"),
    "observe": lambda session: session.observe("cat f", TEXT, call_id="c1"),
    "observe_read": lambda session: session.observe_read("f", TEXT, call_id="c1"),
    "observe_tool": lambda session: session.observe_tool("show", TEXT, call_id="c1"),
    "read": lambda session: session.read("f", call_id="c1"),
}


def text_of(answer: object) -> str:
    return answer.text if isinstance(answer, Reply) else str(answer)


@pytest.mark.parametrize("door", DOORS)
def test_a_call_that_waited_for_the_store_began_before_that(tmp_path: Path, door: str) -> None:
    """By the clock, which other processes have too. It counts how often it was read."""
    (tmp_path / "f").write_text(TEXT)
    ticks = itertools.count()
    store, answers = BlockingStore(has_come=True), list[object]()
    clock = lambda: float(next(ticks))  # noqa: E731
    first, second = (Session(tmp_path, session_id="s", store=store, clock=clock) for _ in range(2))
    first.observe("true", "", call_id="c0")
    slow = threading.Thread(target=lambda: answers.append(DOORS[door](first)))
    slow.start()
    assert store.slow.wait(WATCHDOG)
    assert second.observe("cat f", TEXT, call_id="c2").text == TEXT
    store.go.set()
    slow.join(WATCHDOG)
    assert list(map(text_of, answers)) == [TEXT]
    assert first.observe("cat f", TEXT, call_id="c3").text != TEXT


@pytest.mark.parametrize("door", DOORS)
def test_a_call_that_waited_for_its_own_session_began_before_that(tmp_path: Path, door: str) -> None:
    """Whatever the clock says: this one stands still."""
    (tmp_path / "f").write_text(TEXT)
    begun, answers, here = threading.Event(), list[object](), threading.current_thread()

    def clock() -> float:
        if threading.current_thread() is not here:
            begun.set()
        return 0.0

    session = Session(tmp_path, session_id="s", store=MemoryStore(), clock=clock)
    session.observe("true", "", call_id="c0")
    slow = threading.Thread(target=lambda: answers.append(DOORS[door](session)))
    with session.reader.log.lock:
        slow.start()
        assert begun.wait(WATCHDOG)
        assert session.observe("cat f", TEXT, call_id="c2").text == TEXT
    slow.join(WATCHDOG)
    assert list(map(text_of, answers)) == [TEXT]
    assert session.observe("cat f", TEXT, call_id="c3").text != TEXT


@pytest.mark.parametrize("door", ["observe", "observe_read", "read"])
def test_a_call_does_not_point_at_one_that_was_made_after_it(tmp_path: Path, door: str) -> None:
    (tmp_path / "f").write_text(TEXT)
    store, replies = BlockingStore(), list[Reply]()
    first, second = (Session(tmp_path, session_id="s", store=store) for _ in range(2))
    ask: Callable[[], Reply] = {
        "observe": lambda: first.observe("cat f", TEXT, call_id="c1"),
        "observe_read": lambda: first.observe_read("f", TEXT, call_id="c1"),
        "read": lambda: first.read("f", call_id="c1"),
    }[door]
    slow = threading.Thread(target=lambda: replies.append(ask()))
    slow.start()
    assert store.slow.wait(WATCHDOG)
    assert second.observe("cat f", TEXT, call_id="c2").text == TEXT
    store.go.set()
    slow.join(WATCHDOG)
    (reply,) = replies
    assert (reply.text, reply.reason) == (TEXT, Reason.SAME_BATCH)
    assert first.observe("cat f", TEXT, call_id="c3").text != TEXT
