"""A server that hangs: one hook waits for it, for a moment, and the next ones do without it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from readcache.cli.shim_files import find_client
from readcache.serve import address, ask, frames
from tests.helpers.files import WATCHDOG
from tests.helpers.hanging import hang
from tests.serve.conftest import ServerUnderTest
from tests.serve.test_hooks import events_of, logged, status
from tests.serve.test_life import folder_of, listen

pytestmark = pytest.mark.slow  # waits for servers that hang

Hook = Callable[[bytes], bytes]


@pytest.fixture(params=["python", "client"])
def hook(request: pytest.FixtureRequest, at: ServerUnderTest) -> Hook:
    """Tells an event of Codex to readcache, and gives its answer."""
    if request.param == "python":
        return lambda event: at.readcache("hook", "codex", stdin=event).stdout
    client = find_client()
    if not client:
        pytest.skip("no client can be built here")

    def by_program(event: bytes) -> bytes:
        words = [client, sys.executable, "-m", "readcache", "hook", "codex"]
        return subprocess.run(words, input=event, env=at.env, capture_output=True, timeout=WATCHDOG, check=True).stdout

    return by_program


@pytest.fixture
def listener(at: ServerUnderTest) -> Iterator[socket.socket]:
    """In the place of a server, what takes connections only when a test does."""
    folder_of(at)
    lock = address.take_lock(at.path)
    assert lock is not None
    with listen(at.path) as made:
        made.setblocking(False)
        yield made
    os.close(lock)


def waiting(listener: socket.socket) -> int:
    """The number of connections since this was last asked."""
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            count += 1
    return count


def leave_aside_for(at: ServerUnderTest, seconds: float) -> None:
    """As if a client had found that the server hangs, in the past or by another clock."""
    os.utime(at.path, (time.time() + seconds, os.stat(at.path).st_mtime))


def test_one_hook_waits_for_it_and_the_next_ones_do_not(
    hook: Hook, at: ServerUnderTest, listener: socket.socket, tmp_path: Path
) -> None:
    """A server that hangs cost its whole time limit at every call."""
    first, second = events_of("codex", tmp_path / "work")
    began = time.monotonic()
    assert hook(first) == b""
    took, began = time.monotonic() - began, time.monotonic()
    assert waiting(listener) == 1
    for _ in range(3):
        hook(second)
    assert took < ask.SOON + time.monotonic() - began + 1, "it waits for half a second beside what a process takes"
    assert waiting(listener) == 0
    address.reach(at.path, 1).close()
    assert waiting(listener) == 1, "`doctor` and `serve --stop` reach it"


@pytest.mark.parametrize("seconds", [-1, 3600], ids=["after a while", "when the clock was set back"])
def test_it_is_asked_again(
    seconds: float, hook: Hook, at: ServerUnderTest, listener: socket.socket, tmp_path: Path
) -> None:
    leave_aside_for(at, seconds)
    hook(events_of("codex", tmp_path / "work")[0])
    assert waiting(listener) == 1


def test_one_that_has_taken_the_call_may_take_longer_to_answer(
    hook: Hook, at: ServerUnderTest, listener: socket.socket, tmp_path: Path
) -> None:
    def answer_late() -> None:
        listener.setblocking(True)
        connection = listener.accept()[0]
        frames.send_frame(connection, b"K")
        while frames.read_frame(connection, 1 << 20)[0] != b"I":
            continue
        time.sleep(1)
        frames.send_frame(connection, b"T", b"late")
        assert frames.read_frame(connection, 100)[0] == b"S"
        connection.close()

    thread = threading.Thread(target=answer_late, daemon=True)
    thread.start()
    assert hook(events_of("codex", tmp_path / "work")[0]) == b"late"
    thread.join(WATCHDOG)
    assert not address.is_left_aside(at.path)


def test_when_it_goes_on_it_judges_nothing_that_was_answered_without_it(
    hook: Hook, at: ServerUnderTest, tmp_path: Path
) -> None:
    first, second = events_of("codex", tmp_path / "work")
    pid = at.start()
    hang(pid)
    assert hook(first) == b""
    assert b"UNCHANGED" in hook(second)
    before = logged(at)
    os.kill(pid, signal.SIGCONT)
    assert b'"calls": 0' in status(at)
    assert logged(at) == before
    leave_aside_for(at, -1)
    hook(second)
    assert b'"calls": 1' in status(at)
