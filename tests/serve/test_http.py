"""A hook's event by HTTP: the same answer as by the short way."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from readcache.serve import address
from readcache.serve.fields import NOT_DONE
from tests.helpers.files import WATCHDOG
from tests.serve.conftest import ServerUnderTest
from tests.serve.test_hooks import events_of


def post(at: ServerUnderTest, head: dict[str, Any], event: bytes) -> dict[str, Any]:
    """Return the answer to an event, as a plugin gets it."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "hook", "params": {**head, "event": event.decode()}}
    answer: dict[str, Any] = json.loads(send(at, json.dumps(request).encode())[1])
    assert (answer.pop("jsonrpc"), answer.pop("id")) == ("2.0", 1)
    return answer


def send(at: ServerUnderTest, body: bytes) -> tuple[int, bytes]:
    """Return the status and the body of the answer to a POST."""
    connection = http.client.HTTPConnection("readcache")
    connection.sock = socket.socket(fileno=address.reach(at.path, WATCHDOG).detach())
    connection.sock.settimeout(WATCHDOG)
    connection.request("POST", "/", body)
    answer = connection.getresponse()
    return answer.status, answer.read()


def head(*words: str) -> dict[str, Any]:
    """For whom an event is."""
    return {"words": ["codex", *words], "environ": {}, "cwd": "/"}


def test_an_event_is_answered_as_by_the_short_way(at: ServerUnderTest, tmp_path: Path) -> None:
    at.start()
    first, second = events_of("codex", tmp_path / "work")
    assert post(at, head(), first) == {"result": ""}
    assert "UNCHANGED" in post(at, head(), second)["result"]


def test_the_form_of_the_first_builds_is_answered(at: ServerUnderTest, tmp_path: Path) -> None:
    at.start()
    first, second = events_of("codex", tmp_path / "work")
    assert send(at, json.dumps(head()).encode() + b"\n" + first) == (200, b"")
    status, answer = send(at, json.dumps(head()).encode() + b"\n" + second)
    assert (status, b"UNCHANGED" in answer) == (200, True)
    status, why = send(at, json.dumps(head("--policy", "none")).encode() + b"\n" + first)
    assert (status, b"none" in why) == (409, True)


def test_what_is_not_for_it_is_refused(at: ServerUnderTest, tmp_path: Path) -> None:
    at.start()
    error = post(at, head("--policy", "none"), events_of("codex", tmp_path / "work")[0])["error"]
    assert error["code"] == NOT_DONE
    assert "none" in error["message"]


BODIES = (
    b"",
    b"[]\n",
    b'{"id": 1, "params": {"event": 3}}',
    b'{"params": []}',
    b"{",
    b'{"words": 1, "cwd": 2, "environ": 3}\n',
    b"[" * 100_000 + b"]" * 100_000 + b"\n",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent", [b"P", *(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(b) + b for b in BODIES)]
)
def test_a_broken_request_ends_its_connection_and_nothing_else(
    at: ServerUnderTest, tmp_path: Path, sent: bytes
) -> None:
    at.start()
    connection = address.reach(at.path, WATCHDOG)
    connection.sendall(sent)
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b""
    connection.close()
    assert post(at, head("--off"), b"{}") == {"result": ""}
    assert not (tmp_path / "state/readcache/failures.log").exists(), "no bug was noted"


def test_a_plugin_starts_the_server_and_is_told_where_it_is(at: ServerUnderTest) -> None:
    told = json.loads(at.readcache("serve", "--start").stdout)
    assert told == {"socket": at.path, "environ": {}}
    at.wait()
    assert at.readcache("serve", "--start").stdout, "it runs already"
    for off in ("READCACHE", "READCACHE_SERVER"):
        assert at.readcache("serve", "--start", env={**at.env, off: "off"}).stdout == b""


@pytest.mark.slow  # it waits for 20 seconds
def test_where_no_server_can_be_a_plugin_is_told_of_none(at: ServerUnderTest) -> None:
    ran = at.readcache("serve", "--start", env={**at.env, "XDG_STATE_HOME": "/proc/nowhere"})
    assert (ran.returncode, ran.stdout) == (1, b"")


@pytest.mark.slow
def test_a_server_that_hangs_is_ended_for_a_plugin_and_its_clients_go_on(at: ServerUnderTest) -> None:
    process = at.start()
    os.kill(process, signal.SIGSTOP)
    waiting = address.reach(at.path, WATCHDOG)
    waiting.sendall(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
    assert json.loads(at.readcache("serve", "--start").stdout)["socket"] == at.path
    with contextlib.suppress(ConnectionResetError):
        assert waiting.recv(1) == b""
    waiting.close()
    assert at.wait() != process
    assert post(at, head("--off"), b"{}") == {"result": ""}
