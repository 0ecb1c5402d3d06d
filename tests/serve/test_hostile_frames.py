"""Whatever a client of the short way sends, the server goes on, and serves the next one."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from readcache import __version__
from readcache.serve import address, frames
from readcache.serve.server import MOST_FRAME_CLIENTS
from tests.helpers.files import WATCHDOG
from tests.serve.conftest import ServerUnderTest

pytestmark = pytest.mark.slow  # waits for servers that are full

HEAD = frames.head_texts((__version__, "status", "", "/", ""), (), (), ())


def reach_soon(at: ServerUnderTest) -> Any:
    deadline = time.monotonic() + WATCHDOG
    while True:
        try:
            return address.reach(at.path, WATCHDOG)
        except address.NoServer:  # it has no time to take more at once
            assert time.monotonic() < deadline
            time.sleep(0.01)


def send(at: ServerUnderTest, data: bytes) -> bytes:
    """What comes back until the server is done with us."""
    connection = reach_soon(at)
    back = b""
    try:
        with contextlib.suppress(BrokenPipeError):  # it may have had enough
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(1 << 16):
                back += part
    finally:
        connection.close()
    return back


def is_well(at: ServerUnderTest, pid: int) -> bool:
    return send(at, frames.frame(b"Q", HEAD))[:1] == b"T" and at.wait() == pid


def call(*words: str, kind: str = "run", env: tuple[str, ...] = ("READCACHE_SESSION=s",)) -> bytes:
    return frames.frame(b"Q", frames.head_texts((__version__, kind, "", "/", ""), env, words, ()))


HOSTILE = {
    "nothing": b"",
    "one byte": b"Q",
    "JSON": b'{"jsonrpc": "2.0", "id": 1, "method": "hello"}\n',
    "too long a head": b"Q\xff\xff\xff\xff" + b"x" * 100_000,
    "a head that ends too early": frames.frame(b"Q", HEAD)[:-3],
    "a head without a text's end": frames.frame(b"Q", HEAD[:-1]),
    "an empty head": frames.frame(b"Q", b""),
    "lists longer than they are": frames.frame(b"Q", frames.texts(__version__, "run", "", "/", "", "9999999", "x")),
    "a list of less than nothing": frames.frame(b"Q", frames.texts(__version__, "run", "", "/", "", "-5", "0", "0")),
    "a list of x": frames.frame(b"Q", frames.texts(__version__, "run", "", "/", "", "x")),
    "more than a head": frames.frame(b"Q", HEAD + frames.texts("more")),
    "no UTF-8": frames.frame(b"Q", HEAD.replace(b"/", b"/\xff\xfe")),
    "another letter": frames.frame(b"Z", HEAD),
    "an unknown kind": call("cat f", kind="\x1b[31m"),
    "no words": call(),
    "a tool without words": call(kind="tool"),
    "a tool without a shell": call("cat", "f", kind="tool"),
    "too many words": call("cat f", "cat g"),
    "a policy that is none": call("cat f", env=("READCACHE_SESSION=s", "READCACHE_POLICY=none")),
    "a clip that is none": call("cat f", env=("READCACHE_SESSION=s", "READCACHE_CLIP=x")),
    "an output that is too long": call("cat f") + b"O\xff\xff\xff\x7f" + b"x" * 100_000,
    "a status that is none": call("cat f") + frames.frame(b"O", b"x\0text"),
    "a status without an end": call("cat f") + frames.frame(b"O", b"0"),
    "an output that is no UTF-8": call("cat f") + frames.frame(b"O", b"0\0" + b"\xff\xfe\n" * 99),
    "an output that ends too early": call("cat f") + frames.frame(b"O", b"0\0" + b"x" * 99)[:50],
    "a word before the answer": call("cat f") + frames.frame(b"S", b"x\0"),
    "a time that is none": call("cat f") + frames.frame(b"O", b"0\0text\n") + frames.frame(b"S", b"x\0"),
    "a time without an end": call("cat f") + frames.frame(b"O", b"0\0text\n") + frames.frame(b"S", b"1"),
    "a hook without an event": call("codex", kind="hook"),
    "a hook's event that is too long": call("codex", kind="hook") + b"I\xff\xff\xff\xff" + b"x" * 100_000,
}


def test_what_makes_no_sense_ends_one_connection_alone(at: ServerUnderTest) -> None:
    pid = at.start()
    for name, data in HOSTILE.items():
        back = send(at, data)
        assert back[:1] in (b"", b"B", b"H", b"K", b"W", b"T"), name
        assert is_well(at, pid), name
    log = at.state / "readcache" / "failures.log"
    noted = log.read_text().splitlines() if log.exists() else []
    assert not [line for line in noted if "AttributeError" in line or "UnicodeDecodeError" in line], noted


def test_noise_ends_one_connection_alone(at: ServerUnderTest) -> None:
    pid, rng = at.start(), random.Random(7)
    good = call("cat f") + frames.frame(b"O", b"0\0" + b"a line\n" * 50) + frames.frame(b"S", b"1\0")
    for _ in range(150):
        data = bytearray(good)
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        send(at, bytes(data[: rng.randint(1, len(data))]))
    assert is_well(at, pid)


def test_clients_that_say_nothing_keep_nobody_waiting(at: ServerUnderTest) -> None:
    pid = at.start()
    with contextlib.ExitStack() as silent:
        connections = [silent.enter_context(contextlib.closing(reach_soon(at))) for _ in range(40)]
        for connection in connections[::2]:
            connection.sendall(call("cat f"))
        assert is_well(at, pid), "while they are there: nobody ends their connections"


def test_a_server_that_is_full_of_commands_sends_others_away_and_they_go_on(at: ServerUnderTest) -> None:
    pid = at.start()
    working, answer = [], b"H"
    while answer == b"H":
        working.append(reach_soon(at))
        try:
            working[-1].sendall(call("cat f"))
            answer = working[-1].recv(1)
        except ConnectionError:
            answer = b""
    assert (len(working), answer) == (MOST_FRAME_CLIENTS + 1, b"")
    ran = at.readcache("serve", "--start")
    assert (ran.returncode, ran.stdout) == (1, b""), "it is not there for a plugin, and is not killed"
    for connection in working:
        connection.close()
    deadline = time.monotonic() + WATCHDOG
    while not is_well(at, pid) or len(os.listdir(f"/proc/{pid}/fd")) > 60:
        assert time.monotonic() < deadline


def test_clients_that_say_nothing_do_not_fill_a_server(at: ServerUnderTest) -> None:
    pid = at.start()
    with contextlib.ExitStack() as silent:
        for _ in range(MOST_FRAME_CLIENTS + 20):
            silent.enter_context(contextlib.closing(reach_soon(at)))
        assert send(at, frames.frame(b"Q", HEAD))[:1] == b"T"
        assert at.wait() == pid


def test_the_text_of_one_session_is_never_told_to_another(at: ServerUnderTest, tmp_path: Path) -> None:
    at.start()
    secret = b"".join(b"secret line %d of one session\n" % number for number in range(40))
    for session in ("one", "other"):
        shown = send(
            at,
            call(f"cat {tmp_path}/f", env=(f"READCACHE_SESSION={session}", "READCACHE=on"))
            + frames.frame(b"O", b"0\0" + secret)
            + frames.frame(b"S", f"{time.time()}\0".encode()),
        )
        assert frames.frame(b"A", b"\0") in shown, "all of it is printed, nothing is left out"
        assert b"secret" not in shown
