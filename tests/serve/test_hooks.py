"""Hooks that a server answers: what the host is told is what it would be told without one."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from contextlib import closing
from pathlib import Path

import pytest

from readcache import __version__
from readcache.hosts import find_host
from readcache.hosts.hooks import hook_answer
from readcache.log.store import open_store
from readcache.serve import address, frames
from readcache.serve.calls import FrameServer
from readcache.serve.hooks import ServedHooks
from tests.helpers.files import WATCHDOG, wait_until
from tests.helpers.hanging import hang
from tests.serve.conftest import ServerUnderTest


def events_of(name: str, work: Path) -> list[bytes]:
    """Events of a made-up conversation, the last of which is answered."""
    work.mkdir(exist_ok=True)
    return [json.dumps(event).encode() for event in find_host(name).trial(str(work))]


def ask(at: ServerUnderTest, name: str, event: bytes, *, says: bytes = b"S", words: tuple[str, ...] = ()) -> bytes:
    """What the server answers, as a client of the short way asks; `says`: what that tells of the answer."""
    connection = address.reach(at.path, WATCHDOG)
    head = frames.head_texts((__version__, "hook", at.store, "/", ""), (), (name, *words), ())
    connection.sendall(frames.frame(b"Q", head) + frames.frame(b"I", event))
    assert frames.read_frame(connection, 0) == (frames.TAKEN, b"")
    letter, text = frames.read_frame(connection, 1 << 26)
    if says and letter == b"T":
        frames.send_frame(connection, says)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b"", "it is logged"
    connection.close()
    return letter + text


def status(at: ServerUnderTest) -> bytes:
    """What the server says of itself."""
    connection = address.reach(at.path, WATCHDOG)
    connection.sendall(frames.frame(b"Q", frames.head_texts((__version__, "status", at.store, "/", ""), (), (), ())))
    _, text = frames.read_frame(connection, 1 << 16)
    connection.close()
    return text


@pytest.mark.parametrize("name", ["codex", "gemini"])
def test_it_answers_as_a_process_does(name: str, at: ServerUnderTest, tmp_path: Path) -> None:
    alone = {**at.env, "READCACHE_SERVER": "off", "XDG_STATE_HOME": str(tmp_path / "alone")}
    first, second = events_of(name, tmp_path / "work")
    expected = [at.readcache("hook", name, stdin=event, env=alone).stdout for event in (first, second)]
    assert not (tmp_path / "alone" / "readcache" / "serve").exists()
    at.start()
    answers = [at.readcache("hook", name, stdin=event) for event in (first, second)]
    tag = expected[1].split(b"_UNCHANGED ")[1].split(b".")[0]
    assert tag in answers[1].stdout
    assert [answer.stdout for answer in answers] == expected
    assert all((answer.returncode, answer.stderr) == (0, b"") for answer in answers)


def test_the_first_hook_starts_it_and_the_next_one_finds_it(at: ServerUnderTest, tmp_path: Path) -> None:
    first, second = events_of("codex", tmp_path / "work")
    assert at.readcache("hook", "codex", stdin=first).stdout == b""
    at.wait()
    assert b"UNCHANGED" in at.readcache("hook", "codex", stdin=second).stdout
    found = at.readcache("doctor").stdout.decode()
    assert "1 calls, 0 readers and 1 conversations of hooks held" in found


@pytest.mark.parametrize("off", ["READCACHE_SERVER", "READCACHE"])
def test_switched_off_none_is_started(off: str, at: ServerUnderTest, tmp_path: Path) -> None:
    at.readcache("hook", "codex", stdin=events_of("codex", tmp_path / "work")[0], env={**at.env, off: "off"})
    assert not at.is_locked()


def test_a_killed_server_costs_nothing_but_time(at: ServerUnderTest, tmp_path: Path) -> None:
    first, second = events_of("codex", tmp_path / "work")
    hang(at.start())  # it hangs: the hook waits for a while, and does without
    pid = at.wait()
    assert at.readcache("hook", "codex", stdin=first).stdout == b""
    os.kill(pid, signal.SIGKILL)
    assert b"UNCHANGED" in at.readcache("hook", "codex", stdin=second).stdout


def test_what_was_answered_counts_for_whoever_comes_after_a_kill(at: ServerUnderTest, tmp_path: Path) -> None:
    first, second = events_of("codex", tmp_path / "work")
    pid = at.start()
    assert ask(at, "codex", first) == b"T"
    os.kill(pid, signal.SIGKILL)
    at.wait_for_end()
    at.start()
    assert b"UNCHANGED" in ask(at, "codex", second)


def logged(at: ServerUnderTest) -> list[str]:
    """The kinds of the events of the one session."""
    with closing(open_store(at.store)) as store:
        ((session, *_),) = store.sessions()
        return [type(record.event).__name__ for record in store.records(session)]


def test_a_session_is_logged_as_closed_after_each_event_that_was_answered(at: ServerUnderTest, tmp_path: Path) -> None:
    at.start()
    for event in events_of("codex", tmp_path / "work"):
        ask(at, "codex", event)
    assert logged(at) == ["Delivered", "Closed", "Delivered", "Closed"]


def test_what_was_not_printed_is_taken_back_by_the_next_one(at: ServerUnderTest) -> None:
    def event(call_id: str) -> bytes:
        given = {
            "hook_event_name": "PostToolUse",
            "session_id": "c",
            "transcript_path": "",
            "cwd": "/",
            "tool_name": "Bash",
        }
        call = {
            "tool_use_id": call_id,
            "tool_input": {"command": "cat f"},
            "tool_response": {"stdout": "a line\n" * 40},
        }
        return json.dumps({**given, **call}).encode()

    at.start()
    assert ask(at, "claude-code", event("one"), says=b"") == b"T"
    wait_until(lambda: b'"conversations": 0' in status(at), "that the server sees that its client is gone")
    assert ask(at, "claude-code", event("two")) == b"T"
    assert logged(at) == ["Delivered", "Forgot", "Delivered", "Closed"]


def test_what_is_not_for_it_is_left_to_the_client(at: ServerUnderTest, tmp_path: Path) -> None:
    at.start()
    event = events_of("codex", tmp_path / "work")[0]
    for words in (("--store", str(tmp_path / "other.db")), ("--policy", "none"), ("--nonsense",), ("two",)):
        assert ask(at, "codex", event, words=words)[:1] == b"B"
    assert ask(at, "codex", event, words=("--off",)) == b"T"
    assert ask(at, "codex", b"no json") == b"T", "as a process prints nothing, and notes the failure"
    assert b"JSONDecodeError" in (at.state / "readcache" / "failures.log").read_bytes()


def test_no_more_conversations_are_held_than_there_is_room_for(
    at: ServerUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readcache.serve.hooks.MOST_READERS", 3)
    hooks = ServedHooks(at.store, hook_answer)
    way = FrameServer(at.store, hooks)
    first, second = events_of("codex", tmp_path / "work")

    def tell(event: bytes, conversation: str) -> bytes:
        event = json.dumps({**json.loads(event), "session_id": conversation}).encode()
        ours, theirs = socket.socketpair()
        thread = threading.Thread(target=way.converse, args=(theirs,))
        thread.start()
        head = frames.head_texts((__version__, "hook", at.store, "/", ""), (), ("codex",), ())
        ours.sendall(frames.frame(b"Q", head) + frames.frame(b"I", event))
        assert frames.read_frame(ours, 0) == (frames.TAKEN, b"")
        _, text = frames.read_frame(ours, 1 << 20)
        frames.send_frame(ours, b"S")
        thread.join(WATCHDOG)
        ours.close()
        theirs.close()
        return text

    for number in range(8):
        tell(first, f"c{number}")
    assert len(hooks) == 3
    assert b"UNCHANGED" in tell(second, "c0"), "it was folded again"
    way.close()
