"""Calls that overtake others: what was logged while a call was under way is not its source."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from readcache import Reply, Session
from readcache.log.store.memory import MemoryStore
from readcache.model.reply import Reason
from tests.helpers.files import TEXT, WATCHDOG


class Held(MemoryStore):
    """A store that keeps one thread waiting, as a crowd would, once that thread has come to it before."""

    def __init__(self) -> None:
        super().__init__()
        self.has_come = False
        self.slow = threading.Event()  # set once that thread waits
        self.go = threading.Event()
        self.name = "slow"

    def transaction(self) -> Any:
        if threading.current_thread().name == self.name:
            if self.has_come:
                self.slow.set()
                assert self.go.wait(WATCHDOG)
            self.has_come = True
        return super().transaction()


@pytest.mark.parametrize("door", ["observe", "observe_read", "read"])
def test_a_call_does_not_point_at_one_that_was_made_after_it(tmp_path: Path, door: str) -> None:
    (tmp_path / "f").write_text(TEXT)
    store, replies = Held(), list[Reply]()
    first, second = (Session(tmp_path, session_id="s", store=store) for _ in range(2))
    ask: Callable[[], Reply] = {
        "observe": lambda: first.observe("cat f", TEXT, call_id="c1"),
        "observe_read": lambda: first.observe_read("f", TEXT, call_id="c1"),
        "read": lambda: first.read("f", call_id="c1"),
    }[door]
    slow = threading.Thread(target=lambda: replies.append(ask()), name=store.name)
    slow.start()
    assert store.slow.wait(WATCHDOG)
    assert second.observe("cat f", TEXT, call_id="c2").text == TEXT
    store.go.set()
    slow.join(WATCHDOG)
    (reply,) = replies
    assert (reply.text, reply.reason) == (TEXT, Reason.SAME_BATCH)
    assert first.observe("cat f", TEXT, call_id="c3").text != TEXT
