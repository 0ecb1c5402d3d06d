"""The client of a server that is dead, slow, a liar or somebody else's: every byte comes, and soon."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from readcache import __version__
from readcache.serve.address import socket_path
from readcache.serve.calls import FrameServer
from readcache.serve.frames import frame, read_frame, send_frame, texts
from tests.helpers.files import WATCHDOG
from tests.shims.sandbox import LINES, OTHER, PATIENT, ROOT, Sandbox, make_client, make_sandbox, script, start

SOURCES = [str(ROOT / "shims" / name) for name in ("tool.c", "client.c")]
FLAGS = ["-O2", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-Wall", "-Wextra", "-Werror"]
OTHER_COMPILERS = ("gcc", "clang", "musl-gcc")
Answer = Callable[[socket.socket], None]
# Seconds that nobody's machine needs for a deadline of 50 milliseconds, and less than any other that there is.
SOON = 4.0


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """Without a server, and as patient as it is installed."""
    top = tmp_path_factory.mktemp("client")
    return make_sandbox(top, make_client(top / "client"))


@pytest.fixture(scope="module")
def patient(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """The same place by a client that waits as long as a machine under load needs."""
    return by_client_that_waits(PATIENT, sandbox, tmp_path_factory.mktemp("patient"))


def by_client_that_waits(flag: str, sandbox: Sandbox, top: Path) -> Sandbox:
    return replace(sandbox, shims=make_sandbox(top, make_client(top / "client", flag)).shims)


def socket_file_of(sandbox: Sandbox) -> Path:
    return Path(socket_path(str(sandbox.directory.parent / ".local/state/readcache"), str(sandbox.store)))


@contextlib.contextmanager
def listening(path: Path, answer: Answer | None) -> Iterator[list[str]]:
    """Something at the server's place, which does `answer` with each connection; None: it never looks at one. Gives the
    list of those that asked: a server that another test started may still look whether somebody is there."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)
    came: list[str] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1 if answer is None else 64)

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=converse, args=(connection,), daemon=True).start()

        def converse(connection: socket.socket) -> None:
            assert answer is not None
            with connection, contextlib.suppress(OSError):
                if connection.recv(1, socket.MSG_PEEK):
                    came.append("one")
                answer(connection)

        if answer is not None:
            threading.Thread(target=serve, daemon=True).start()
        try:
            yield came
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            path.unlink(missing_ok=True)


def both_ways(sandbox: Sandbox, command: str = "cat f; exit 3") -> list[tuple[bytes, int]]:
    """A tool, and a whole command, by the client."""
    shell = start(["bash", "-c", command], sandbox.by_bash_env(), "merged", sandbox.directory)
    words = [str(sandbox.shims / "readcache-run"), "-c", command]
    whole = start(words, sandbox.readcache(), "merged", sandbox.directory)
    return [(shell.out, shell.status), (whole.out, whole.status)]


@pytest.mark.parametrize("compiler", ["cc", *(pytest.param(c, marks=pytest.mark.slow) for c in OTHER_COMPILERS)])
def test_it_is_built_without_a_warning(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    words = [compiler, *FLAGS, '-DVERSION="1"', "-o", str(tmp_path / "tool"), *SOURCES]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# ------------------------------------------------------------ servers that do not serve


def in_turn(*steps: Answer) -> Answer:
    def answer(connection: socket.socket) -> None:
        for step in steps:
            step(connection)

    return answer


def take(connection: socket.socket) -> None:
    read_frame(connection, 1 << 23)


def sleep(_: socket.socket) -> None:
    time.sleep(120)


def say(*parts: bytes) -> Answer:
    return lambda connection: connection.sendall(b"".join(parts))


def stay(connection: socket.socket) -> None:
    connection.recv(1)


BUFFER = in_turn(take, say(frame(b"H", texts("B"))))
BAD: dict[str, Answer | None] = {
    "full, and accepts nobody": None,
    "hangs before it reads": sleep,
    "is gone at once": in_turn(),
    "hangs after the head": in_turn(take, sleep),
    "says no letter that there is": in_turn(take, say(frame(b"?", b"")), stay),
    "says half a front": in_turn(take, say(b"H\0"), stay),
    "names a length that there is not": in_turn(take, say(b"H\xff\xff\xff\xff"), stay),
    "names no end of a path": in_turn(take, say(frame(b"H", b"B\0/nowhere")), stay),
    "says nothing in its verdict": in_turn(take, say(frame(b"H", b"")), stay),
    "is of another version": in_turn(take, say(frame(b"B", b"version\0")), stay),
    "hangs while the tool runs": in_turn(BUFFER, sleep),
    "is gone while the tool runs": BUFFER,
    "hangs with the output": in_turn(BUFFER, take, sleep),
    "is gone with the output": in_turn(BUFFER, take),
    "says half of an answer": in_turn(BUFFER, take, say(b"T\x10\0\0\0[FILE_UN")),
    "says half of an answer and hangs": in_turn(BUFFER, take, say(b"T\x10\0\0\0[FILE_UN"), sleep),
    "answers with more than fits": in_turn(BUFFER, take, say(b"T\0\0\0\x7f"), stay),
    "answers with no letter that there is": in_turn(BUFFER, take, say(frame(b"X", b"lines")), stay),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BAD)
def test_a_server_that_does_not_serve_costs_no_byte_and_a_deadline_at_most(sandbox: Sandbox, what: str) -> None:
    sandbox.reset()
    with contextlib.ExitStack() as until_then:
        until_then.enter_context(listening(socket_file_of(sandbox), BAD[what]))
        if BAD[what] is None:  # the queue of those who wait is full as well
            for _ in range(8):
                waiting = until_then.enter_context(socket.socket(socket.AF_UNIX))
                waiting.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    waiting.connect(str(socket_file_of(sandbox)))
        began = time.monotonic()
        outs = both_ways(sandbox)
        took = time.monotonic() - began
    assert outs == [(LINES.encode(), 3)] * 2
    if took >= SOON:  # the machine is busy, or it waited: what is it without anything that could be waited for?
        began = time.monotonic()
        both_ways(sandbox)
        assert took < SOON + 3 * (time.monotonic() - began)


class _Late:
    """A connection on which our answer comes when the client has given up, and left word."""

    def __init__(self, connection: socket.socket) -> None:
        self.recv, self.fileno, self._connection = connection.recv, connection.fileno, connection

    def sendall(self, data: bytes) -> None:
        if data[:1] in (b"A", b"T"):
            select.select([self._connection], [], [], 60)
        self._connection.sendall(data)


@pytest.mark.slow
def test_what_a_client_printed_that_could_not_wait_counts_where_the_answer_would_have_been_all_of_it(
    sandbox: Sandbox, patient: Sandbox, tmp_path: Path
) -> None:
    sandbox.reset()
    hurried = by_client_that_waits("-DPATIENCE_MS=1000", sandbox, tmp_path)  # all that comes before is in time
    way, env = FrameServer(str(sandbox.store)), hurried.by_bash_env()
    words, ended = ["bash", "-c", "cat sub/g; :"], threading.Semaphore(0)

    def late(connection: socket.socket) -> None:
        way.converse(_Late(connection))  # type: ignore[arg-type]  # all that is used of a socket
        ended.release()

    with listening(socket_file_of(sandbox), late):
        assert start(words, env, "pipe", sandbox.directory).out.decode() == OTHER
        assert ended.acquire(timeout=WATCHDOG)
        assert way.causes == {"deadline": 1}
        assert (
            start(words, env, "pipe", sandbox.directory).out.decode() == OTHER
        )  # and not the marker, which is late too
        assert ended.acquire(timeout=WATCHDOG)
    with listening(socket_file_of(sandbox), way.converse):
        env = patient.by_bash_env()
        outs = [start(words, env, "pipe", sandbox.directory).out.decode() for _ in range(2)]
    way.close()
    assert any(out.startswith("[FILE_UNCHANGED ") for out in outs)


@pytest.mark.slow
@pytest.mark.parametrize("closing", ["exec >/dev/null 2>&1", "exec >&- 2>&-"])
def test_a_command_that_gives_up_its_stdout_is_shown_at_the_limit(
    sandbox: Sandbox, tmp_path: Path, closing: str
) -> None:
    """What was held came only when the command ended, which may be never."""
    sandbox.reset()
    hurried = by_client_that_waits("-DHELD_SECONDS=1", sandbox, tmp_path)
    way, gate = FrameServer(str(sandbox.store)), tmp_path / "gate"
    os.mkfifo(gate)
    words = [str(hurried.shims / "readcache-run"), "-c", f"cat sub/g; {closing}; read -r x <{gate}"]
    with (
        listening(socket_file_of(sandbox), way.converse),
        subprocess.Popen(words, env=hurried.readcache(), cwd=sandbox.directory, stdout=subprocess.PIPE) as ran,
    ):
        assert ran.stdout is not None
        shown = b""
        while len(shown) < len(OTHER):
            shown += os.read(ran.stdout.fileno(), 1 << 16)
        assert (shown.decode(), ran.poll()) == (OTHER, None)
        gate.write_text("go\n")
        assert ran.wait() == 0
    way.close()


# ------------------------------------------------------------ what starts before the server has thought about it


NUMBERED = "".join(f"{n}\n" for n in range(1, 11))
REFUSED: dict[str, tuple[bytes, ...]] = {
    "is none of its business": (frame(b"B", texts("")),),
    "is to run by itself": (frame(b"W", b""),),
    "reads what is no file": (frame(b"H", texts("B", "/proc/self/status")),),
    "is broken": (b"H\xff\xff\xff\xff",),
}


def started_before_the_verdict(sandbox: Sandbox, top: Path, command: str, seconds: float, verdict: Answer) -> bool:
    """Did the tool of a command start while a server looked at the call for so long? All that it prints comes."""
    told, found = top / "told", []
    for tool in ("cat", "head", "tail", "nl", "sed"):
        script(top / "tools" / tool, f'#!/bin/sh\necho >{told}\nexec /usr/bin/{tool} "$@"\n')

    def look(_: socket.socket) -> None:
        deadline = time.monotonic() + seconds
        while not told.exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        found.append(told.exists())

    sandbox.reset()
    (sandbox.directory / "7").write_text(NUMBERED)
    env = sandbox.by_bash_env(PATH=f"{top / 'tools'}:{sandbox.env()['PATH']}")
    with listening(socket_file_of(sandbox), in_turn(take, look, verdict)):
        out = start(["bash", "-c", f"{command}; exit 3"], env, "merged", sandbox.directory)
    told.unlink()
    native = start(["bash", "-c", f"{command}; exit 3"], sandbox.env(), "merged", sandbox.directory)
    assert (out.out, out.status) == (native.out, 3)
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("command", ["cat f", "head -n 3 ./f", "tail -n +5 f", "sed -n 2,5p f", "nl f sub/g"])
def test_a_tool_that_prints_files_alone_starts_while_the_server_thinks(
    patient: Sandbox, command: str, tmp_path: Path
) -> None:
    assert started_before_the_verdict(patient, tmp_path, command, 20, say(frame(b"B", texts(""))))


@pytest.mark.parametrize(
    "command",
    [
        "tail -s 1 f",
        "cat -s f",
        "cat f missing 2>/dev/null",
        "sed -i.bak s/line/x/ f",
        "sed -n 7 <f 2>/dev/null",
        "head -3 7",
    ],
)
def test_any_other_tool_waits_for_what_the_server_says(patient: Sandbox, command: str, tmp_path: Path) -> None:
    assert not started_before_the_verdict(patient, tmp_path, command, 0.2, say(frame(b"B", texts(""))))


@pytest.mark.parametrize("what", REFUSED)
def test_what_started_early_is_passed_on_as_it_comes_where_the_call(
    patient: Sandbox, what: str, tmp_path: Path
) -> None:
    assert started_before_the_verdict(patient, tmp_path, "cat f sub/g", 20, in_turn(say(*REFUSED[what]), stay))


# ------------------------------------------------------------ whom it trusts


LIE = in_turn(BUFFER, take, say(frame(b"T", b"a lie\n")), stay)


def test_what_a_server_says_is_printed_where_it_can_be_trusted(patient: Sandbox) -> None:
    patient.reset()
    with listening(socket_file_of(patient), LIE):
        assert both_ways(patient) == [(b"a lie\n", 3)] * 2


@pytest.mark.parametrize("trouble", ["others may write", "a link", "no socket", "a link to the socket"])
def test_a_place_in_which_others_can_put_something_is_not_trusted(
    sandbox: Sandbox, trouble: str, tmp_path: Path
) -> None:
    sandbox.reset()
    socket_file = socket_file_of(sandbox)
    shutil.rmtree(socket_file.parent, ignore_errors=True)
    real = tmp_path / "place" / socket_file.name if "link" in trouble else socket_file
    with listening(real, LIE) as came:
        try:
            if trouble == "others may write":
                socket_file.parent.chmod(0o770)
            elif trouble == "a link":
                socket_file.parent.symlink_to(real.parent)
            elif trouble == "a link to the socket":
                socket_file.parent.mkdir(mode=0o700)
                socket_file.symlink_to(real)
            else:
                socket_file.unlink()
                socket_file.write_text("")
            env = sandbox.by_bash_env(READCACHE_SERVER="off") if trouble == "no socket" else sandbox.by_bash_env()
            out = start(["bash", "-c", "cat sub/g; :"], env, "pipe", sandbox.directory).out
        finally:
            if socket_file.parent.is_symlink():
                socket_file.parent.unlink()
            shutil.rmtree(socket_file.parent, ignore_errors=True)
    assert out.decode() == OTHER
    assert came == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a socket of another user's")
@pytest.mark.parametrize("what", ["directory", "process"])
def test_another_users_place_or_process_is_not_trusted(sandbox: Sandbox, what: str) -> None:
    sandbox.reset()
    socket_file = socket_file_of(sandbox)
    with listening(socket_file, LIE) as came:
        os.chown(socket_file.parent, 1, 1)
        if what == "process":  # whoever has the directory is somebody else's server for us
            os.chown(socket_file, 1, 1)
        out = start(["bash", "-c", "cat sub/g; :"], sandbox.by_bash_env(), "pipe", sandbox.directory).out
    shutil.rmtree(socket_file.parent, ignore_errors=True)
    assert out.decode() == OTHER
    assert came == []


def test_a_relative_home_or_store_leads_to_no_server(sandbox: Sandbox) -> None:
    sandbox.reset()
    with listening(socket_file_of(sandbox), LIE) as came:
        for more in (
            {"HOME": "."},
            {"READCACHE_STORE": "../store.db"},
            {"XDG_STATE_HOME": f"{sandbox.directory}/../x"},
        ):
            env = sandbox.by_bash_env(READCACHE_SERVER="", **more)
            env["READCACHE"] = "on"
            assert (
                start(["bash", "-c", "cat sub/g >/dev/null; cat f | head -n 1"], env, "pipe", sandbox.directory).status
                == 0
            )
    assert came == []


def test_the_environment_names_no_socket_and_no_program(sandbox: Sandbox, tmp_path: Path) -> None:
    """Of the variables that an agent can set, none makes the client ask somebody else or run anything."""
    sandbox.reset()
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    with listening(tmp_path / "own" / ".socket", LIE) as came:
        named = {name: str(tmp_path / "own" / ".socket") for name in ("READCACHE_SOCKET", "READCACHE_SERVE")}
        named |= {name: str(evil) for name in ("READCACHE_PYTHON", "READCACHE_ALONE", "ENV", "PYTHONSTARTUP")}
        env = sandbox.by_bash_env(READCACHE_SERVER="off", **named)
        out = start(["bash", "-c", "cat sub/g; :"], env, "pipe", sandbox.directory).out
    assert out.decode() == OTHER
    assert came == []
    assert not (tmp_path / "ran").exists()


def test_the_version_is_the_packages(patient: Sandbox) -> None:
    """Of another one's server it does not even know the name."""
    heads: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        heads.append(read_frame(connection, 1 << 22)[1])
        send_frame(connection, b"B", texts(""))

    patient.reset()
    with listening(socket_file_of(patient), answer):
        both_ways(patient)
    assert {head.split(b"\0")[0].decode() for head in heads} == {__version__}
    assert [head.split(b"\0")[1] for head in heads] == [b"tool", b"run"]
