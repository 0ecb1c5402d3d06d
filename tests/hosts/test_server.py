"""`readcache serve` as a process: streams, sockets, clients that are slow, dead or many, and its end."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import io
import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import UsageError
from readcache.serve import json_client, server
from readcache.serve.fields import INVALID_REQUEST, NO_JSON, NOT_DONE, UNKNOWN_METHOD
from readcache.serve.protocol import MOST_BYTES
from readcache.serve.socket_file import listening
from tests.helpers.files import WATCHDOG, wait_until
from tests.helpers.forks import Process, start

TOP = Path(__file__).resolve().parents[2]
SONG = "".join(f"{number} bottles of beer on the wall\n" for number in range(40))


def line(method: str, number: int = 1, conversation: str = "c", **params: Any) -> bytes:
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": {"conversation": conversation, **params}}
    return json.dumps(request).encode() + b"\n"


def cat(number: int = 1, conversation: str = "c") -> bytes:
    return line("observe", number, conversation, command="cat song", output=SONG, cwd="/w")


@pytest.fixture
def env(tmp_path: Path, _forked: None) -> dict[str, str]:
    """The variables of a process with a state directory of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("READCACHE")}
    return {**kept, "XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": str(TOP)}


def serve(env: dict[str, str], *words: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return start(["serve", *words], env=env, stdin=pipe, stdout=pipe, stderr=pipe)


def talk(env: dict[str, str], sent: bytes, *words: str) -> list[dict[str, Any]]:
    with serve(env, *words) as process:
        out, err = process.communicate(sent, timeout=WATCHDOG)
    assert (process.returncode, err) == (0, b"")
    return [json.loads(each) for each in out.splitlines()]


# ---------------------------------------------------------------- stdin and stdout


def test_requests_are_answered_in_their_order_until_stdin_ends(env: dict[str, str]) -> None:
    answers = talk(env, b"".join(cat(number) for number in range(3)) + b"\n \n{oops\n" + line("stats", 9)[:-1])
    assert [answer["id"] for answer in answers] == [0, 1, 2, None, 9]
    assert [answer["result"]["outcome"] for answer in answers[:3]] == ["full", "unchanged", "full"]


def test_what_one_server_was_told_the_next_one_knows(env: dict[str, str]) -> None:
    assert talk(env, cat())[0]["result"]["outcome"] == "full"
    assert talk(env, cat())[0]["result"]["outcome"] == "unchanged"


def test_advise_and_policy_are_taken_from_the_words(env: dict[str, str]) -> None:
    answers = talk(env, cat() + cat() + line("hello"), "--advise", "--policy", "max")
    assert [answer["result"].get("reason") for answer in answers] == ["not_seen", "advised", None]
    assert answers[2]["result"]["mode"] == "advise"


@pytest.mark.parametrize("value", ["off", "0", "what?"])
def test_switched_off_it_answers_with_the_real_text_and_keeps_nothing(value: str, env: dict[str, str]) -> None:
    answers = talk({**env, "READCACHE": value}, cat() + cat())
    assert [answer["result"]["text"] for answer in answers] == [SONG, SONG]
    assert not Path(env["XDG_STATE_HOME"]).exists()


def test_a_wrong_word_is_said_and_nothing_is_served(env: dict[str, str]) -> None:
    with serve(env, "--policy", "most") as process:
        out, err = process.communicate(timeout=WATCHDOG)
    assert (process.returncode, out) == (2, b"")
    assert b"unknown policy 'most'" in err


def test_closed_streams_are_an_end_or_an_error(env: dict[str, str]) -> None:
    for closed, status, said in (("<&-", 0, b""), (">&-", 2, b"stdout is closed"), ("2>&-", 0, b"")):
        command = f'exec "{sys.executable}" -m readcache serve {closed}'
        done = subprocess.run(
            ["bash", "-c", command], env=env, input=cat(), capture_output=True, timeout=WATCHDOG, check=False
        )
        assert (done.returncode, said in done.stderr) == (status, True)


def test_commands_run_beside_other_requests_and_stdin_may_end_meanwhile(env: dict[str, str], tmp_path: Path) -> None:
    command = "until [ -e go ]; do sleep 0.02; done; echo late; cat 2>&1"
    with serve(env) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line("run", 1, command=command, cwd=str(tmp_path)) + line("stats", 2))
        process.stdin.close()
        assert json.loads(process.stdout.readline())["id"] == 2
        (tmp_path / "go").touch()
        answer = json.loads(process.stdout.readline())
        assert (answer["id"], answer["result"]["text"]) == (1, "late\n")
        assert process.wait(WATCHDOG) == 0


def test_what_commands_print_never_gets_among_the_answers(env: dict[str, str], tmp_path: Path) -> None:
    answers = talk(env, line("run", command="echo out; echo err >&2; echo x > /proc/self/fd/1", cwd=str(tmp_path)))
    assert answers[0]["result"]["text"] == "out\nerr\nx\n"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z" if Path("/proc").is_dir() else True


@pytest.mark.parametrize("end", ["SIGTERM", "the parent dies"])
def test_at_its_end_the_commands_are_killed(end: str, env: dict[str, str], tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with serve(env) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line("run", command=f"echo $$ > {pid}; exec sleep 300"))
        process.stdin.flush()
        wait_until(lambda: pid.exists() and pid.read_text())
        if end == "SIGTERM":
            process.terminate()
            answer = json.loads(process.stdout.readline())
            assert answer["error"]["code"] == NOT_DONE
        else:
            process.stdout.close()
            process.stdin.close()
        assert process.wait(WATCHDOG) == 0
    wait_until(lambda: not is_alive(int(pid.read_text())))


def test_after_a_sigterm_the_results_count_as_shown(env: dict[str, str]) -> None:
    with serve(env) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(cat())
        process.stdin.flush()
        process.stdout.readline()
        process.terminate()
        assert process.wait(WATCHDOG) == 0
    assert talk(env, cat())[0]["result"]["outcome"] == "unchanged"


def test_after_a_kill_they_do_not(env: dict[str, str]) -> None:
    with serve(env) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(cat())
        process.stdin.flush()
        process.stdout.readline()
        process.kill()
    assert talk(env, cat())[0]["result"]["outcome"] == "full"


def test_a_line_that_is_too_long_is_skipped(env: dict[str, str]) -> None:
    answers = talk(env, b"x" * (MOST_BYTES + 1) + b"\n" + cat())
    assert [answer.get("error", {}).get("code") for answer in answers] == [INVALID_REQUEST, None]


def lines(sent: bytes) -> list[bytes | None]:
    found = iter(partial(json_client.read_line, io.BytesIO(sent)), bytearray())
    return [None if each is None else bytes(each) for each in found]


@given(st.lists(st.binary(max_size=5)), st.booleans())
def test_lines_come_whole_and_blank_ones_do_not(parts: list[bytes], ends: bool) -> None:
    whole = [part.replace(b"\n", b"") for part in parts]
    found = lines(b"\n".join(whole) + (b"\n" if ends else b""))
    assert [each and each.strip() for each in found] == [each.strip() for each in whole if each.strip()]


def test_a_long_line_is_known_by_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_client, "MOST_BYTES", 8)
    monkeypatch.setattr(json_client, "CHUNK", 3)
    for sent, found in (
        (b"12345678\n123456789\nx\n", [b"12345678\n", None, b"x\n"]),
        (b"1234567890123456\nx", [None, b"x"]),
        (b"123456789", [None]),
        (b"12345678", [b"12345678"]),
        (b" " * 20 + b"\nx", [b"x"]),
    ):
        assert lines(sent) == found


# ---------------------------------------------------------------- a socket


@pytest.fixture
def socket_file() -> Iterator[Path]:
    """A short path in a directory of ours: sockets take no long ones."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rc-") as found:
        yield Path(found) / "s"


@contextmanager
def on_socket(env: dict[str, str], socket_file: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    with serve(env, "--socket", str(socket_file), *words) as process:
        try:
            wait_until(lambda: socket_file.exists() or process.poll() is not None)
            yield process
        finally:
            process.terminate()


class SocketClient:
    """One connection."""

    def __init__(self, socket_file: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(WATCHDOG)
        self.socket.connect(str(socket_file))
        self.file = self.socket.makefile("rb")

    def ask(self, sent: bytes) -> dict[str, Any]:
        self.socket.sendall(sent)
        answer: dict[str, Any] = json.loads(self.file.readline())
        return answer

    def close(self) -> None:
        self.file.close()
        self.socket.close()


class PostingClient:
    """One connection, by HTTP."""

    def __init__(self, socket_file: Path) -> None:
        self.connection = http.client.HTTPConnection("readcache")
        self.connection.sock = socket.socket(socket.AF_UNIX)
        self.connection.sock.settimeout(WATCHDOG)
        self.connection.sock.connect(str(socket_file))

    def post(self, sent: bytes) -> tuple[int, Any]:
        self.connection.request("POST", "/", sent)
        answer = self.connection.getresponse()
        body = answer.read()
        return answer.status, json.loads(body) if body else None


def test_a_client_that_posts_is_answered_as_one_that_sends_lines(env: dict[str, str], socket_file: Path) -> None:
    with on_socket(env, socket_file, "--run") as process:
        client = PostingClient(socket_file)
        found = [client.post(cat(number)) for number in range(3)]
        assert [(status, answer["id"]) for status, answer in found] == [(200, 0), (200, 1), (200, 2)]
        assert [answer["result"]["outcome"] for _, answer in found] == ["full", "unchanged", "full"]
        assert client.post(line("run", command="echo $((6 * 7))"))[1]["result"]["text"] == "42\n"
        assert client.post(b'{"jsonrpc": "2.0", "method": "stats", "params": {"conversation": "c"}}') == (202, None)
        assert client.post(b"{")[1]["error"]["code"] == NO_JSON
        assert client.post(line("stats", 9))[1]["id"] == 9
        client.connection.close()
        assert process.poll() is None


@pytest.mark.parametrize(
    "sent", [b"P", b"POST / HTTP/1.1\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: %s\r\n\r\n{}" % (b"9" * 5000)]
)
def test_a_broken_post_ends_its_connection_and_nothing_else(
    sent: bytes, env: dict[str, str], socket_file: Path
) -> None:
    with on_socket(env, socket_file) as process:
        broken = SocketClient(socket_file)
        broken.socket.sendall(sent)
        broken.socket.shutdown(socket.SHUT_WR)
        assert broken.file.read() == b""
        broken.close()
        client = PostingClient(socket_file)
        assert client.post(cat())[0] == 200
        client.connection.close()
        process.terminate()
        _, err = process.communicate(timeout=WATCHDOG)
    assert err == b""


def test_the_socket_is_its_owners_alone_and_goes_with_the_server(env: dict[str, str], socket_file: Path) -> None:
    with on_socket(env, socket_file) as process:
        assert stat.S_IMODE(socket_file.stat().st_mode) == 0o600
        process.terminate()
        assert process.wait(WATCHDOG) == 0
    assert not socket_file.exists()


def test_many_clients_are_served_at_once_and_a_slow_one_waits_for_itself(
    env: dict[str, str], socket_file: Path
) -> None:
    with on_socket(env, socket_file):
        slow = SocketClient(socket_file)
        slow.socket.setblocking(False)
        sent = cat(conversation="slow") * 200
        with contextlib.suppress(BlockingIOError):  # it never reads an answer, until nothing more is taken from it
            while sent:
                slow.socket.send(sent)
        wrong: list[object] = []

        def work(name: str) -> None:
            client = SocketClient(socket_file)
            outcomes = [client.ask(cat(k, name))["result"]["outcome"] for k in range(9)]
            if outcomes != ["full", "unchanged", "full", *["unchanged", "full"] * 3]:
                wrong.append(outcomes)
            client.close()

        threads = [threading.Thread(target=work, args=(f"c{k}",)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WATCHDOG)
        assert not wrong
        slow.close()


def test_a_client_that_dies_or_talks_nonsense_hurts_nobody(env: dict[str, str], socket_file: Path) -> None:
    with on_socket(env, socket_file) as process:
        for sent in (b"", b"{", b"\n\n", cat() * 50, b"\xff" * 9, line("hello")[:7]):
            client = SocketClient(socket_file)
            client.socket.sendall(sent)
            client.close()
        client = SocketClient(socket_file)
        assert client.ask(cat(conversation="new"))["result"]["outcome"] == "full"
        client.close()
        assert process.poll() is None


def test_on_a_socket_no_command_is_run_unless_that_was_asked_for(env: dict[str, str], socket_file: Path) -> None:
    for words, code in (((), UNKNOWN_METHOD), (("--run",), None)):
        with on_socket(env, socket_file, *words) as process:
            client = SocketClient(socket_file)
            answer = client.ask(line("run", command="echo here"))
            client.close()
            process.terminate()
            process.wait(WATCHDOG)
        assert answer.get("error", {}).get("code") == code


def test_a_path_in_a_text_is_never_opened_for_a_client_of_a_socket(
    env: dict[str, str], socket_file: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("".join(f"line {k} that nobody sent\n" for k in range(40)))
    with on_socket(env, socket_file):
        client = SocketClient(socket_file)
        client.ask(line("observe", command=f"cat {secret}", output=SONG))
        plan = client.ask(line("restore_plan"))["result"]
        client.close()
    assert "nobody sent" not in json.dumps(plan)


def test_what_a_dead_server_left_is_replaced_and_a_living_ones_is_not(env: dict[str, str], socket_file: Path) -> None:
    with on_socket(env, socket_file) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(WATCHDOG)
    assert socket_file.exists()
    before = socket_file.stat().st_ctime_ns
    with serve(env, "--socket", str(socket_file)) as process:
        wait_until(lambda: socket_file.stat().st_ctime_ns != before)  # the new one takes its place, by a rename
        client = SocketClient(socket_file)
        assert client.ask(cat())["id"] == 1
        with serve(env, "--socket", str(socket_file)) as other:
            _, err = other.communicate(timeout=WATCHDOG)
        assert other.returncode == 2
        assert b"a server already runs at" in err
        client.close()
        process.terminate()


def test_a_place_that_will_not_do_is_named(socket_file: Path) -> None:
    folder = socket_file.parent
    (folder / "file").write_text("mine")
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    for path, what in (
        (folder / "file", "not a socket: give another"),
        (folder / "open" / "s", "others may write to"),
        (folder / ("x" * 200), "more than 94 bytes"),
        (folder / "file" / "s", "cannot create a socket"),
    ):
        with pytest.raises(UsageError, match=what), listening(str(path)):
            pass
    assert (folder / "file").read_text() == "mine"


def test_a_directory_of_another_user_is_refused(socket_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(UsageError, match="is not yours"), listening(str(socket_file)):
        pass


def test_a_directory_that_somebody_keeps_locked_is_named(socket_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readcache.serve.socket_file.LOCK_SECONDS", 0.0)
    directory_fd = os.open(socket_file.parent, os.O_RDONLY)
    fcntl.flock(directory_fd, fcntl.LOCK_SH)  # the right to read is enough
    try:
        with pytest.raises(UsageError, match="keeps its directory locked"), listening(str(socket_file)):
            pass
    finally:
        os.close(directory_fd)
    with listening(str(socket_file)):
        assert socket_file.exists()


def test_servers_that_start_at_once_leave_one(env: dict[str, str], socket_file: Path) -> None:
    with on_socket(env, socket_file) as process:
        process.kill()
        process.wait(WATCHDOG)
    others = [serve(env, "--socket", str(socket_file)) for _ in range(4)]
    wait_until(lambda: sum(other.poll() is None for other in others) == 1)
    client = SocketClient(socket_file)
    assert client.ask(cat())["id"] == 1
    client.close()
    for other in others:
        other.terminate()
        other.communicate(timeout=WATCHDOG)
    assert sorted(other.returncode for other in others) == [0, 2, 2, 2]


def test_when_it_is_full_a_silent_client_makes_room(env: dict[str, str], socket_file: Path) -> None:
    with on_socket(env, socket_file):
        clients = [SocketClient(socket_file) for _ in range(server.MOST_CLIENTS)]
        for client in clients:
            assert client.ask(cat())["id"] == 1
        late = SocketClient(socket_file)
        assert late.ask(cat())["id"] == 1
        wait_until(lambda: any(map(_has_ended, clients)))  # its thread may close it after the late one was answered
        ended = [client for client in clients if _has_ended(client)]
        assert [client.socket.recv(1) for client in ended] == [b""]
        for client in clients:
            assert client in ended or client.ask(cat())["id"] == 1
        for client in (*clients, late):
            client.close()


def _has_ended(client: SocketClient) -> bool:
    return bool(select.select([client.socket], [], [], 0)[0])


SMALL = "import sys; from readcache.serve import server; server.MOST_CLIENTS = 2; from readcache.cli import main; "


def test_a_client_whose_command_runs_keeps_its_place(env: dict[str, str], socket_file: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", f"{SMALL}sys.exit(main.main())", "serve", "--socket", str(socket_file), "--run"]
    waits = line("run", command="echo > begun.$$; until [ -e go ]; do sleep 0.02; done; echo late", cwd=str(tmp_path))
    with Process(words, env=env, stderr=subprocess.PIPE) as process:
        wait_until(socket_file.exists)
        working, silent = SocketClient(socket_file), SocketClient(socket_file)
        working.socket.sendall(waits)
        wait_until(lambda: list(tmp_path.glob("begun.*")))
        late = SocketClient(socket_file)
        assert late.ask(cat())["id"] == 1
        assert silent.file.readline() == b""
        late.socket.sendall(waits)
        wait_until(lambda: len(list(tmp_path.glob("begun.*"))) == 2)
        refused = SocketClient(socket_file)
        assert json.loads(refused.file.readline())["error"]["code"] == NOT_DONE
        (tmp_path / "go").touch()
        for client in (working, late):
            assert json.loads(client.file.readline())["result"]["text"] == "late\n"
        for client in (working, silent, late, refused):
            client.close()
        process.terminate()


@pytest.mark.slow  # it sends 64 megabytes
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells how much memory a process has")
def test_the_memory_of_large_requests_is_returned(env: dict[str, str], socket_file: Path) -> None:
    def megabytes() -> int:
        status = Path(f"/proc/{process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) // 1024

    with on_socket(env, socket_file) as process:
        before = megabytes()
        clients = [SocketClient(socket_file) for _ in range(8)]
        for client in clients:
            client.socket.sendall(b'{"id": 1, "method": "' + b"x" * (MOST_BYTES - 100))
        for client in clients[::2]:
            assert client.ask(b'"}\n')["error"]["code"] == UNKNOWN_METHOD
        assert megabytes() > before + 100
        for client in clients[1::2]:
            client.close()
        wait_until(lambda: megabytes() < before + 30)
        for client in clients[::2]:  # those that stay, silently
            client.close()
