"""Clients of a socket reach the conversations of that socket's own store, and no others."""

from __future__ import annotations

import _socket
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from readcache import Session, __version__
from readcache.cli.main import main
from readcache.core.model.events import Delivered
from readcache.serve import address, frames
from readcache.serve.address import socket_store
from tests.helpers.files import WATCHDOG
from tests.helpers.forks import start
from tests.serve.conftest import ServerUnderTest

PLANNED = "cat plan"
PLAN = "".join(f"line {number} of the plan\n" for number in range(40))
OTHER = "".join(f"row {number} that nobody was shown\n" for number in range(40))


@pytest.fixture
def socket() -> Iterator[Path]:
    """A short path in a directory of ours: sockets take no long ones."""
    with tempfile.TemporaryDirectory(prefix="rc-") as found:
        yield Path(found) / "s"


@contextmanager
def serving(at: ServerUnderTest, path: Path, *options: str, env: dict[str, str] | None = None) -> Iterator[None]:
    """While a server listens at the path."""
    with start(["serve", "--socket", str(path), *options], env=env or at.env) as server:
        try:
            at.wait(str(path))
            yield
        finally:
            server.terminate()


def ask(path: Path, method: str, /, **params: Any) -> dict[str, Any]:
    """The answer to a request about the conversation `mine`."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"conversation": "mine", **params}}
    connection = address.reach(str(path), WATCHDOG)
    try:
        connection.sendall(json.dumps(request).encode() + b"\n")
        answer: dict[str, Any] = json.loads(read_line(connection))
    finally:
        connection.close()
    return answer


def read_line(connection: _socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"\n") and (part := connection.recv(1 << 16)):
        found += part
    return found


def run_shortly(path: Path, command: str, output: str, store: str = "", session: str = "mine") -> bytes:
    """By the short way: the letter that the server answers to a command with that output; b"" where it hangs up."""
    connection = address.reach(str(path), WATCHDOG)
    try:
        env = (f"READCACHE_SESSION={session}", "READCACHE=on")
        head = frames.head_texts((__version__, "run", store, "/repo", ""), env, (command,), ())
        frames.send_frame(connection, b"Q", head)
        letter, _ = frames.read_frame(connection, 1 << 20)
        if letter == b"H":
            frames.send_frame(connection, b"O", frames.texts("0") + output.encode())
            letter, _ = frames.read_frame(connection, 1 << 20)
            frames.send_frame(connection, b"S", frames.texts(str(time.time())))
        return letter
    except ConnectionResetError:
        return b""
    finally:
        connection.close()


@contextmanager
def conversation(store: str) -> Iterator[Session]:
    with Session("/repo", session_id="mine", store=store, local=False) as session:
        yield session


@pytest.mark.parametrize("names_its_store", [False, True])
def test_the_users_own_conversations_can_neither_be_read_nor_written(
    at: ServerUnderTest, socket: Path, tmp_path: Path, names_its_store: bool
) -> None:
    store = str(tmp_path / "mine.db") if names_its_store else at.store
    env = at.env | ({"READCACHE_STORE": store} if names_its_store else {})
    with conversation(store) as session:
        session.observe("cat plan", PLAN)
        before = session.events()
    with serving(at, socket, env=env):
        needed: dict[str, dict[str, Any]] = {
            "observe": {"command": "cat other", "output": OTHER, "cwd": "/repo"},
            "observe_read": {"path": "/repo/third", "output": OTHER},
            "observe_tool": {"name": "tool", "output": OTHER},
            "wrote": {"path": "/repo/plan", "content": OTHER},
            "settle": {"call_id": "1", "text": OTHER},
            "sync": {"messages": []},
            "mend": {"messages": []},
            "rewind": {"call_id": "1"},
            "fork": {"name": "child"},
            "markers_in": {"text": PLAN},
        }
        for method in ask(socket, "hello")["result"]["methods"]:
            assert "of the plan" not in json.dumps(ask(socket, method, **needed.get(method, {}))), method
        assert run_shortly(socket, "cat plan", PLAN, store) == b""
        assert run_shortly(socket, "cat fourth", OTHER) == b""
    with conversation(store) as session:
        assert session.events()[:-1] == before  # the last says that the session was closed
        assert session.observe("cat fourth", OTHER).text == OTHER
        assert session.observe("cat plan", PLAN).outcome.value == "unchanged"


def test_a_sandbox_reaches_the_conversations_that_were_named_and_nothing_else(
    at: ServerUnderTest, socket: Path
) -> None:
    store = socket_store(str(socket))
    with conversation(at.store) as session:
        session.observe(PLANNED, PLAN)
    with Session("/repo", session_id="other", store=store, local=False) as session:
        session.observe(PLANNED, PLAN)
    with serving(at, socket, "--session", "mine", "--session", "second"):
        for session_id in ("mine", "second"):
            assert run_shortly(socket, "cat fourth", OTHER, session=session_id) == b"A"
            assert run_shortly(socket, "cat fourth", OTHER, session=session_id) == b"T"
        for session_id in ("other", "mine/", "Mine", ""):
            assert run_shortly(socket, "cat fifth", OTHER, session=session_id) == b"B"
        assert run_shortly(socket, "cat plan", PLAN, at.store) == b"B"
        assert hook(socket, store) == b"B"
        assert raw_answer(socket, b'{"jsonrpc": "2.0", "id": 1, "method": "hello"}\n') == b""
    for other in (at.store, store):
        with Session("/repo", session_id="other" if other == store else "mine", store=other, local=False) as session:
            assert [record.event.label for record in session.events() if isinstance(record.event, Delivered)] == [
                PLANNED
            ]


def hook(path: Path, store: str) -> bytes:
    """The letter that answers an event of a host, which would have the server read the host's files."""
    connection = address.reach(str(path), WATCHDOG)
    try:
        head = frames.head_texts((__version__, "hook", store, "/repo", ""), ("READCACHE_SESSION=mine",), ("codex",), ())
        frames.send_frame(connection, b"Q", head)
        return frames.read_frame(connection, 1 << 20)[0]
    finally:
        connection.close()


def raw_answer(path: Path, sent: bytes) -> bytes:
    """What comes back until the server hangs up."""
    connection = address.reach(str(path), WATCHDOG)
    try:
        connection.sendall(sent)
        return read_line(connection)
    except ConnectionResetError:
        return b""
    finally:
        connection.close()


@pytest.mark.parametrize("words", [(), ("--run", "--socket", "s"), ("--socket", "s", "--store", "redis://localhost")])
def test_conversations_are_named_for_sandboxes_alone(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--session", "mine", *words]) == 2
    assert "serve --session" in capsys.readouterr().err


def test_each_socket_has_a_store_and_finds_it_again(at: ServerUnderTest, socket: Path) -> None:
    told = {"command": "cat plan", "output": PLAN, "cwd": "/repo"}
    other = socket.with_name("t")
    with ExitStack() as both:
        for path in (socket, other):
            both.enter_context(serving(at, path))
            assert ask(path, "observe", **told)["result"]["outcome"] == "full"
    with serving(at, socket):
        assert ask(socket, "observe", **told)["result"]["outcome"] == "unchanged"
    assert not Path(at.store).exists()


def test_clients_that_may_run_commands_have_the_users_own_store(at: ServerUnderTest, socket: Path) -> None:
    with conversation(at.store) as session:
        session.observe("cat plan", PLAN)
    with serving(at, socket, "--run"):
        assert ask(socket, "observe", command="cat plan", output=PLAN, cwd="/repo")["result"]["outcome"] == "unchanged"


def test_a_sockets_store_loses_what_is_old_with_the_users_own(
    at: ServerUnderTest, socket: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan").write_text(PLAN)
    store = socket_store(str(socket))
    with Session("/repo", session_id="old", store=store, clock=lambda: time.time() - 31 * 86_400) as session:
        session.observe("cat plan", PLAN)
    with conversation(store) as session:
        session.observe("cat plan", PLAN)
    assert at.readcache("run", "--session", "s", "-c", f"cat {tmp_path}/plan").returncode == 0
    assert main(["sessions", "--json", "--store", store]) == 0
    assert [each["session"] for each in json.loads(capfd.readouterr().out)["sessions"]] == ["mine"]
    assert os.stat(at.state / "readcache").st_mode & 0o777 == 0o700
    main(["doctor", "--store", store])
    assert "for 30 days after a session's last call" in capfd.readouterr().out
