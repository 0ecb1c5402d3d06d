"""Commands made up at random, by a client whose server answers, is slow, hangs up anywhere or is gone at once: every
byte and the status are those without shims."""

from __future__ import annotations

import os
import random
import shutil
import socket
import time
from pathlib import Path

import pytest

from readcache.serve.calls import FrameServer
from tests.shims.sandbox import LINES, OTHER, PATIENT, Sandbox, make_client, make_sandbox, start
from tests.shims.test_client import listening, socket_file_of

OPTIONS = {
    "cat": ("", "-n", "-A", "-s", "--", "-", "-b"),
    "head": ("", "-n 5", "-5", "-c 100", "-n -3", "-q", "-v", "--lines=3", "-n 0"),
    "tail": ("", "-n 5", "-5", "-n +5", "+5", "-c 50", "-q", "--lines=3"),
    "nl": ("", "-b a", "-n ln", "-ba", "-w3"),
    "sed": (
        "-n 5p",
        "-n 1,3p",
        "-n '2,$p'",
        "5q",
        "-n 5",
        "s/line/LINE/",
        "-n 5p,7",
        "''",
        "-n p",
        "-e 1d",
        "'1,2!d'",
        "w out",
    ),
}
CONTENTS: dict[str, bytes] = {
    "f": LINES.encode(),
    "sub/g": OTHER.encode(),
    "5p": b"five\nfive\n",  # names that an option, a range or a script could be
    "1,3p": b"a\nb\nc\nd\n",
    "7": b"7a\n7b\n",
    "-n": b"dash n\n",
    "p": b"file p\n",
    "with space": b"x y\n" * 30,
    "no end": b"no newline",
    "empty": b"",
    "bytes": bytes(range(256)) * 20,
    "longer than a pipe": b"0123456789abcdef" * 8000 + b"\n",
    "crlf": b"a\r\nb\r\n" * 10,
    os.fsdecode(b"n\xff\xfe"): b"odd\n",
}
FILES = [
    "f",
    "sub/g",
    "./f",
    "5p",
    "1,3p",
    "7",
    "./-n",
    "p",
    "'with space'",
    "'no end'",
    "empty",
    "bytes",
    "$'n\\xff\\xfe'",
    "'longer than a pipe'",
    "'longer than we hold'",
    "crlf",
    "link",
    "dangling",
    "missing",
    "sub",
    "/dev/null",
]
AROUND = [
    "{}",
    "{}",
    "{}",
    "({}); {}",
    "for i in 1 2; do {}; done",
    "{} & wait; echo done",
    "{} >copy; cat copy",
    "{} 2>&1",
    "exec {}",
    "set -e; {}; echo after",
    "ulimit -n 12; {}",
    "exec 0<&-; {}",
    "exec 2>&-; {}",
    "timeout 60 {}",
    "trap 'echo bye' EXIT; {}",
    "cd sub; {}",
    "{} && {} || echo no",
    "{}; echo $?; {}",
    "{} | head -n 3",
    "{} | cat",
]
ENDS = ("", "", "; exit 3", "; echo end")
COMMANDS = 120
LEAST_ANSWERED = {"answers": 20, "is slow": 0, "hangs up": 5, "is gone": 0}  # calls, or this would test nothing
HANG_UP_WITHIN = 2000  # bytes; most calls, with their heads, take less


def made_up(choose: random.Random) -> str:
    command = choose.choice(AROUND) + choose.choice(ENDS)
    while "{}" in command:
        tool = choose.choice(list(OPTIONS))
        files = " ".join(choose.choices(FILES, k=choose.choice((0, 1, 1, 1, 2, 3))))
        words = tool, choose.choice(OPTIONS[tool]), files or choose.choice(("<f", "</dev/null", "<<<here"))
        command = command.replace("{}", " ".join(words), 1)
    return command


def fill(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "sub").mkdir(parents=True)
    for name, content in CONTENTS.items():
        (directory / name).write_bytes(content)
    (directory / "link").symlink_to("f")
    (directory / "dangling").symlink_to("nowhere")
    (directory / "longer than we hold").symlink_to("../huge")


def what_it_does(
    sandbox: Sandbox, words: list[str], env: dict[str, str], stdout: str
) -> tuple[bytes, bytes, int, object]:
    fill(sandbox.directory)
    ran = start(words, env, stdout, sandbox.directory)
    (sandbox.directory / "longer than we hold").unlink()
    return ran.out, ran.err, ran.status, {name: data for name, data in sandbox.files().items() if name not in CONTENTS}


class _Faulty:
    """A connection that is slow, or breaks somewhere."""

    def __init__(self, connection: socket.socket, server: str, choose: random.Random, answered: list[bytes]) -> None:
        self.fileno, self._connection = connection.fileno, connection
        self._pauses = (0, 0.001, 0.01, 0.06) if server == "is slow" else (0,)
        self._left = choose.randrange(1, HANG_UP_WITHIN) if server == "hangs up" else 1 << 40
        self._choose, self._answered = choose, answered

    def recv(self, size: int, flags: int = 0) -> bytes:
        time.sleep(self._choose.choice(self._pauses))
        data = self._connection.recv(min(size, self._left), flags) if self._left else b""
        self._left -= 0 if flags else len(data)
        return data

    def sendall(self, data: bytes) -> None:
        time.sleep(self._choose.choice(self._pauses))
        self._connection.sendall(data[: self._left])
        self._left -= len(data)
        if self._left <= 0:
            raise BrokenPipeError
        self._answered += [data] if data[:1] == b"A" else []


@pytest.mark.slow
@pytest.mark.parametrize("way", ["by tools", "by whole commands"])
@pytest.mark.parametrize("server", ["answers", "is slow", "hangs up", "is gone"])
def test_no_byte_changes_where_nothing_is_left_out_and_the_server(
    server: str, way: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    choose, answered = random.Random(f"{server}, {way}"), list[bytes]()
    top = tmp_path_factory.mktemp("any")
    sandbox = make_sandbox(top, make_client(top / "client", *([] if server == "is slow" else [PATIENT])))
    (sandbox.directory.parent / "huge").write_bytes(b"line of a huge file\n" * 450_000)
    judge = FrameServer(str(sandbox.store))

    def converse(connection: socket.socket) -> None:
        if server != "is gone":
            judge.converse(_Faulty(connection, server, random.Random(), answered))  # type: ignore[arg-type]  # all that is used of a socket

    with listening(socket_file_of(sandbox), converse):
        for number in range(COMMANDS):
            command = made_up(choose)
            stdout = choose.choice(("pipe", "merged", "pty", "socketpair", "file"))
            if "|" in command:  # what a pipeline says, and what it complains of, come in any order
                stdout = "pipe"
            env = sandbox.readcache(READCACHE="advise", READCACHE_SESSION=f"session {number // 20}")
            words = ["bash", "-c", command]
            plain = what_it_does(sandbox, words, sandbox.env(), stdout)
            if way == "by tools":
                env["BASH_ENV"] = str(sandbox.shims / "agent-shell.sh")
            else:
                words[0] = str(sandbox.shims / "readcache-run")
            assert what_it_does(sandbox, words, env, stdout) == plain, command
    judge.close()
    assert len(answered) >= LEAST_ANSWERED[server]
