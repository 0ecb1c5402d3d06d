"""The logs that a server holds are a memory of the store, and no more than that."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from readcache import Reply, Session, __version__
from readcache.core.model.call import command_call
from readcache.core.model.policy import Policy, Rules
from readcache.core.model.reply import Outcome, Reason
from readcache.core.model.text import session_tag
from readcache.core.shell.read import read_command
from readcache.serve import logs as logs_module
from readcache.serve.calls import FrameServer
from readcache.serve.frames import frame, head_texts, read_frame, send_frame, texts
from readcache.serve.logs import OpenLogs
from tests.helpers.files import TEXT
from tests.helpers.one_call import answer as answer_one


def answer(logs: OpenLogs, command: str, output: str = TEXT, session: str = "s", agent: str = "main") -> Reply:
    """Return the server's answer to a call, which was printed."""
    call = command_call(os.urandom(4).hex(), command, "/w", output, read_command(command, "/w"))
    with logs.use(session, agent) as open_log:
        return answer_one(open_log.reader(Rules(Policy(), session_tag(session))), call, began=time.time())


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def test_the_first_call_of_a_session_knows_what_matters_to_it_and_the_next_one_all(path: str) -> None:
    with Session("/w", session_id="s", store=path) as session:
        session.observe("cat f", TEXT)
        session.observe("cat g", TEXT.upper())
    logs = OpenLogs(path)
    assert answer(logs, "cat f").reason is Reason.COVERED
    half = "".join(TEXT.upper().splitlines(keepends=True)[:40])
    assert answer(logs, "git show HEAD:g | head -40", half).outcome is Outcome.UNCHANGED, "found by its text alone"
    logs.close()


@pytest.mark.parametrize("policy", [Policy(), Policy.named("max")], ids=["default", "max"])
def test_a_long_session_is_folded_while_nobody_waits(path: str, policy: Policy) -> None:
    with Session("/w", session_id="s", store=path) as session:
        for number in range(400):
            session.observe(f"cat f{number}", TEXT.replace("line", f"part {number}"))
    logs = OpenLogs(path)
    call = command_call("c", "cat f7", "/w", TEXT.replace("line", "part 7"), read_command("cat f7", "/w"))
    with logs.use("s", "main") as open_log:
        began = time.thread_time()
        reply = answer_one(open_log.reader(Rules(policy, session_tag("s"))), call, began=time.time())
        answered = time.thread_time() - began
        began = time.thread_time()
    folded = time.thread_time() - began
    assert reply.outcome is Outcome.UNCHANGED
    assert answered < folded / 3
    logs.close()


@pytest.mark.parametrize("other", [{"session": "another"}, {"agent": "sub"}])
def test_each_reader_is_answered_from_its_own_log(path: str, other: dict[str, str]) -> None:
    logs = OpenLogs(path)
    answer(logs, "cat f")
    assert answer(logs, "cat f", **other).outcome is Outcome.FULL
    assert answer(logs, "cat f", **other).reason is Reason.COVERED
    logs.close()


def test_what_others_log_is_seen_at_once(path: str) -> None:
    logs = OpenLogs(path)
    answer(logs, "cat f")
    with Session("/w", session_id="s", store=path) as session:
        session.observe("cat g", TEXT.upper())
        session.compacted(keep=())
    assert answer(logs, "cat f").reason is not Reason.COVERED
    assert answer(logs, "cat f").reason is Reason.COVERED
    logs.close()


def test_no_more_are_held_than_there_is_room_for(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs_module, "MOST_LOGS", 3)
    logs = OpenLogs(path)
    for number in range(9):
        answer(logs, "cat f", session=f"s{number}")
    assert len(logs) == 3
    assert answer(logs, "cat f", session="s0").reason is Reason.COVERED, "it was folded again"
    opened = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    assert opened.count(path) <= 2, "all of them share one connection; another one folds"
    logs.close()


def test_a_store_that_was_taken_away_is_forgotten(path: str) -> None:
    logs = OpenLogs(path)
    answer(logs, "cat f")
    for name in (path, f"{path}-wal", f"{path}-shm"):
        os.unlink(name)
    assert answer(logs, "cat f").outcome is Outcome.FULL
    assert answer(logs, "cat g", TEXT.upper()).outcome is Outcome.FULL
    assert answer(logs, "cat g", TEXT.upper()).reason is Reason.COVERED
    logs.close()


class _Busy:
    """The server's end of a connection, on a machine on which it comes late to what is there."""

    def __init__(self, connection: socket.socket) -> None:
        self.fileno, self._connection = connection.fileno, connection
        self.sendall: Callable[[bytes], None] = connection.sendall

    def recv(self, size: int, flags: int = 0) -> bytes:
        data = self._connection.recv(size, flags)
        if not flags and data[:1] == b"E":
            time.sleep(0.3)
        return data


def asked(way: FrameServer, command: str) -> tuple[socket.socket, threading.Thread, bytes]:
    """The client's end of a call by `readcache-run`, the thread that serves it, and the letter of the verdict."""
    ours, theirs = socket.socketpair()

    def converse() -> None:
        with theirs:
            way.converse(_Busy(theirs))  # type: ignore[arg-type]  # all that is used of a socket

    thread = threading.Thread(target=converse)
    thread.start()
    environment = ("READCACHE=on", "READCACHE_SESSION=s")
    send_frame(ours, b"Q", head_texts((__version__, "run", "", "/w", ""), environment, (command,), ()))
    return ours, thread, read_frame(ours, 1 << 16)[0]


def read_by(way: FrameServer, command: str) -> bytes:
    """The letter of the answer to a command that prints `TEXT`."""
    ours, thread, verdict = asked(way, command)
    with ours:
        assert verdict == b"H"
        ours.sendall(frame(b"O", texts("0") + TEXT.encode()))
        letter, _ = read_frame(ours, 1 << 16)
        ours.sendall(frame(b"S", texts(str(time.time()))))
    thread.join()
    return letter


def test_what_a_command_is_about_to_write_is_awaited_before_it_may_run(path: str) -> None:
    """The next command may be here before the thread that answered goes on."""
    way, seen = FrameServer(path), list[int]()

    ours, theirs = socket.socketpair()

    def send(data: bytes) -> None:
        seen.append(sum(len(open_log._waiting) for open_log in way.logs._open.values()))
        theirs.sendall(data)

    watched = _Busy(theirs)
    watched.sendall = send
    with ours, theirs:
        environment = ("READCACHE=on", "READCACHE_SESSION=s")
        send_frame(ours, b"Q", head_texts((__version__, "run", "", "/w", ""), environment, ("sed -i s/a/b/ f",), ()))
        ours.sendall(frame(b"E", texts("0")))
        way.converse(watched)  # type: ignore[arg-type]
    way.close()
    assert seen == [1]


def test_what_a_command_wrote_is_known_to_the_next_one_on_a_busy_machine(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs_module, "_ARRIVES", 60.0)
    way = FrameServer(path)
    assert read_by(way, "cat f") == b"A"
    assert read_by(way, "head -n 99 f") == b"T"
    ours, thread, verdict = asked(way, "sed -i s/a/b/ f")
    assert verdict == b"W"
    ours.sendall(frame(b"E", texts("0")))
    ours.close()  # the client has gone, and the agent has its next command
    assert read_by(way, "cat f") == b"A"
    thread.join()
    way.close()
