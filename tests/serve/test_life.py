"""The server that is started on demand: it is started once, found by its own user and version alone, and ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import readcache
from readcache.cli import serve
from readcache.cli.main import main
from readcache.serve import address, stop
from readcache.serve import expiry as useless
from readcache.serve.address import NoServer
from tests.helpers.files import WATCHDOG
from tests.helpers.hanging import hang
from tests.serve.conftest import ServerUnderTest

pytestmark = pytest.mark.slow  # waits for servers that start, end and are replaced


def test_its_place_is_its_owners_alone_and_names_version_and_store(at: ServerUnderTest) -> None:
    at.start()
    folder = Path(at.path).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(os.stat(at.path).st_mode) == 0o600
    assert Path(at.path).name.startswith(f"{readcache.__version__}-")
    assert len({address.socket_path("/s", store) for store in ("/a", "/b", "/a/b", "")}) == 4


def test_those_who_start_it_at_once_start_one_and_wait_for_nothing(
    at: ServerUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, words = tmp_path / "gate", address.server_words(at.store)
    os.mkfifo(gate)
    monkeypatch.setattr(
        address, "server_words", lambda _: ["/bin/sh", "-c", f'read x <"{gate}"; exec "$@"', "sh", *words]
    )
    started: list[bool] = []
    threads = [
        threading.Thread(target=lambda: started.append(address.start(at.path, at.store)), daemon=True) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WATCHDOG)
    assert sorted(started) == [*[False] * 7, True], "while the server is kept from its own start"
    gate.write_text("open\n")
    first = at.wait()
    assert not address.start(at.path, at.store)
    assert at.wait() == first


def test_it_has_nothing_open_of_whoever_started_it(at: ServerUnderTest) -> None:
    ours, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    pid = at.start()
    os.close(theirs)
    assert os.read(ours, 1) == b"", "the other end is closed"
    os.close(ours)
    assert os.getsid(pid) != os.getsid(0)
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.readlink(f"/proc/{pid}/fd/1") == os.devnull


def test_it_has_no_variables_but_those_that_say_where_things_are(
    at: ServerUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("READCACHE_SESSION", "mine")
    monkeypatch.setenv("AN_API_KEY", "secret")
    pid = at.start()
    assert b"secret" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert b"READCACHE_SESSION" not in Path(f"/proc/{pid}/environ").read_bytes()


def test_what_a_killed_one_left_is_replaced(at: ServerUnderTest) -> None:
    first = at.start()
    os.kill(first, signal.SIGKILL)
    at.wait_for_end()
    assert Path(at.path).exists()
    with pytest.raises(NoServer):
        address.reach(at.path, 1)
    assert at.start() != first


def test_one_that_dies_at_once_is_not_started_again_at_once(
    at: ServerUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(address, "SOON", 600.0)
    monkeypatch.setattr(address, "server_words", lambda _: [sys.executable, "-c", "1/0"])
    assert address.start(at.path, at.store)
    at.wait_for_end()
    assert not address.start(at.path, at.store)
    long_ago = time.time() - 600
    os.utime(f"{at.path}.lock", (long_ago, long_ago))
    assert address.start(at.path, at.store)
    at.wait_for_end()


def test_a_second_one_that_is_started_by_hand_ends_at_once(at: ServerUnderTest) -> None:
    pid = at.start()
    assert at.readcache("serve", "--on-demand").returncode == 0
    assert at.wait() == pid


def test_it_is_told_to_stop(at: ServerUnderTest) -> None:
    pid = at.start()
    assert at.readcache("serve", "--stop").stdout == f"stopped process {pid}\n".encode()
    assert not Path(at.path).exists()
    assert at.readcache("serve", "--stop").stdout == b"no server is running for this store\n"


StartOld = Callable[[str], tuple[int, str]]


@pytest.fixture
def start_old(at: ServerUnderTest) -> Iterator[StartOld]:
    """Starts a server as another version of the package does: gives its process id, and where it listens."""
    started: list[subprocess.Popen[bytes]] = []

    def start(version: str) -> tuple[int, str]:
        path = at.path.replace(f"/{readcache.__version__}-", f"/{version}-")
        code = f"import readcache; readcache.__version__ = {version!r}; from readcache.cli.main import main; main()"
        started.append(subprocess.Popen([sys.executable, "-c", code, "serve", "--on-demand"], env=at.env))
        return at.wait(path), path

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_those_of_other_versions_are_told_to_stop_too(at: ServerUnderTest, start_old: StartOld) -> None:
    pids = {at.start(), start_old("0.0.1")[0], start_old("0.0.2")[0]}
    said = at.readcache("serve", "--stop").stdout.decode().splitlines()
    assert sorted(said) == sorted(f"stopped process {pid}" for pid in pids)
    assert os.listdir(Path(at.path).parent) == [Path(at.path).name + ".lock"]
    assert at.start() not in pids


def test_none_of_another_store_is_told_to_stop(at: ServerUnderTest) -> None:
    pid = at.start()
    assert at.readcache("serve", "--stop", "--store", "other.db").stdout == b"no server is running for this store\n"
    assert at.wait() == pid


def test_nothing_is_taken_away_of_one_that_hangs(
    start_old: StartOld, at: ServerUnderTest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "_STOP_SECONDS", 0.3)
    pid, path = start_old("0.0.1")
    hang(pid)
    assert main(["serve", "--stop"]) == 1
    assert capsys.readouterr().err.endswith(f"kill {pid}\n")
    assert Path(path).exists()
    os.kill(pid, signal.SIGKILL)
    at.wait_for_end(path=path)
    assert at.readcache("serve", "--stop").stdout == b"no server is running for this store\n"
    assert not os.listdir(Path(path).parent)


def test_a_number_that_a_dead_process_left_behind_is_not_told_to_stop(at: ServerUnderTest) -> None:
    folder_of(at)
    bind = [sys.executable, "-c", BIND_AND_LEAVE, at.path]
    with subprocess.Popen(bind, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        first.stdout.readline()
        assert first.wait() == 0
        assert stop.answers(at.path), "its child listens"
        assert stop.send_signal(at.path, signal.SIGTERM) is None


BIND_AND_LEAVE = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
os.chdir(os.path.dirname(sys.argv[1]))
listener.bind(os.path.basename(sys.argv[1]))
listener.listen()
if not os.fork():
    sys.stdin.read()
    os._exit(0)
print("listening", flush=True)
"""


def test_a_lock_that_is_taken_away_in_this_moment_is_not_had(
    at: ServerUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_of(at)
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", lambda *_: os.unlink(f"{at.path}.lock"))
        assert address.take_lock(at.path) is None


def test_it_ends_when_nobody_asks(at: ServerUnderTest) -> None:
    began = time.monotonic()
    assert at.readcache("serve", "--on-demand", "--idle", "1").returncode == 0
    assert time.monotonic() - began > 1
    assert not Path(at.path).exists()


@pytest.mark.parametrize("change", ["idle", "unreachable", "replaced", "ended"])
def test_it_is_useless_when(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(useless, "TICK", 0.05)
    path, ended, module = tmp_path / "s", threading.Event(), tmp_path / "module.py"
    path.touch()
    module.touch()
    monkeypatch.setattr(sys.modules["readcache.serve.expiry"], "__file__", str(module))

    looks = 0

    def idle_for() -> float:
        """Is asked at each look; nothing changes before the third."""
        nonlocal looks
        looks += 1
        if looks == 3 and change == "unreachable":
            path.unlink()
        elif looks == 3 and change == "replaced":
            module.write_text("more")
        elif looks == 3 and change == "ended":
            ended.set()
        return 60.0 if looks == 3 and change == "idle" else 0.0

    assert useless.wait_until_useless(ended, str(path), idle_for, 60.0) == change
    assert looks == 3


def test_a_client_of_another_version_does_not_find_it(at: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    at.start()
    monkeypatch.setattr(readcache, "__version__", "9.9")
    other = address.socket_path(str(at.state / "readcache"), at.store)
    assert other != at.path
    with pytest.raises(NoServer):
        address.reach(other, 1)


# ---------------------------------------------------------------- whom a client trusts


def folder_of(at: ServerUnderTest) -> Path:
    folder = Path(at.path).parent
    folder.mkdir(parents=True, mode=0o700)
    return folder


def listen(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    listener.bind(address.short_name(path, folder))
    os.close(folder)
    listener.listen()
    return listener


def test_a_directory_into_which_others_may_write_is_not_trusted(at: ServerUnderTest) -> None:
    folder = folder_of(at)
    with listen(at.path):
        address.reach(at.path, 1).close()
        for mode in (0o770, 0o707, 0o777):
            folder.chmod(mode)
            with pytest.raises(NoServer, match="others may write"):
                address.reach(at.path, 1)
            assert not address.start(at.path, at.store)
        folder.chmod(0o700)


def test_a_directory_of_another_user_is_not_trusted(at: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(at)
    with listen(at.path):
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        with pytest.raises(NoServer, match="another user"):
            address.reach(at.path, 1)
        assert not address.start(at.path, at.store)


def test_a_directory_or_a_socket_by_a_link_is_not_trusted(at: ServerUnderTest, tmp_path: Path) -> None:
    folder = folder_of(at)
    real = tmp_path / "real"
    with listen(str(real)):
        os.symlink(real, at.path)
        with pytest.raises(NoServer, match="not a socket"):
            address.reach(at.path, 1)
    shutil.rmtree(folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    with listen(str(elsewhere / Path(at.path).name)):
        os.symlink(elsewhere, folder)
        with pytest.raises(NoServer):
            address.reach(at.path, 1)
        assert not address.start(at.path, at.store)


def test_what_is_no_socket_is_no_server(at: ServerUnderTest) -> None:
    folder_of(at)
    Path(at.path).write_text("a file")
    with pytest.raises(NoServer, match="not a socket"):
        address.reach(at.path, 1)
    assert address.start(at.path, at.store)
    at.wait_for_end()
    assert Path(at.path).read_text() == "a file", "nor is it replaced"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_users_process_at_the_socket_is_not_trusted_nor_served(at: ServerUnderTest) -> None:
    folder = folder_of(at)
    become_other = "os.setgroups([]); os.setgid(65534); os.setuid(65534)"
    listen = f"{become_other}; listener.listen(); print(1, flush=True); import time; time.sleep(60)"
    program = "import os, socket, sys; os.chdir(sys.argv[1]); listener = socket.socket(socket.AF_UNIX)\n"
    words = [str(folder), Path(at.path).name]
    bind = [sys.executable, "-c", f"{program}listener.bind(sys.argv[2]); {listen}", *words]
    with subprocess.Popen(bind, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(NoServer, match="another user's process"):
            address.reach(at.path, 1)
        assert stop.send_signal(at.path, signal.SIGTERM) is None
        other.kill()
    os.unlink(at.path)
    at.start()
    folder.chmod(0o701)  # only the peer's id is left to keep it out
    os.chmod(at.path, 0o666)
    ask = f"{program}{become_other}; listener.connect(sys.argv[2]); listener.settimeout(5); print(listener.recv(1))"
    ran = subprocess.run([sys.executable, "-c", ask, *words], capture_output=True, timeout=WATCHDOG, check=False)
    assert ran.stdout == b"b''\n", ran.stderr
