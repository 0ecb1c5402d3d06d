"""A suite for clients of `readcache serve` in any language.

Derive a test class from `ClientConformance`, and name a program that drives your client.

    class TestMyClient(ClientConformance):
        driver = ("build/my-driver",)

The program is given the client's deadline in milliseconds, and the words that start the server. Each line on its stdin
is a request of the protocol without `jsonrpc` and `id`. The program lets the client send it, and prints a line before
it reads the next one. The line is {"result": …}, as the server gave it, or {"error": …} if the real output must be
shown. It ends with stdin, and the server with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

_REAL = (sys.executable, "-m", "readcache", "serve")
_SLOW, _SHORT = 30_000, 500  # deadlines in milliseconds: for a busy machine; for a server that does not answer
_SONG = "".join(f"{number} bottles of beer on the wall\n" for number in range(40))
_HALF = "".join(_SONG.splitlines(True)[:20])

# A scripted server. The test adds the code for each request. `answer(request)` sends the request's params back.
_SERVER = """
import json, os, sys, time
with open(sys.argv[1], "a") as file:
    print(os.getpid(), file=file)
def say(text, end="\\n"):
    sys.stdout.write(text + end)
    sys.stdout.flush()
def answer(request):
    assert request["jsonrpc"] == "2.0"
    params = {name: value for name, value in request["params"].items() if name not in ("conversation", "agent")}
    say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": params}))
for count, line in enumerate(sys.stdin):
    request = json.loads(line)
"""
_NONSENSE = ["say('nonsense')", "say('null')", "say('[1]')", "say('{}')", "say('')\n    say('{\"id\": 1')"]


class Driven:
    """A running driver."""

    def __init__(self, process: subprocess.Popen[str], started: Path) -> None:
        self._process, self._started = process, started

    def ask(self, method: str, agent: str = "main", **params: Any) -> dict[str, Any]:
        """Send a request, and return the line that the driver prints: a result or an error. Raise AssertionError for
        anything else."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"method": method, "params": {"conversation": "c", "agent": agent, **params}}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        found = json.loads(self._process.stdout.readline() or "null")
        assert isinstance(found, dict), f"the driver printed {found}"
        assert found.keys() in ({"result"}, {"error"}), f"the driver printed {found}"
        return found

    def fails(self, **params: Any) -> bool:
        """Return True if the client reports that the caller must show the real output."""
        return "error" in self.ask("stats", **params)

    def leaves_it_aside(self, **params: Any) -> bool:
        """Return True if sixty more requests fail without waiting for a deadline each. Sixty deadlines take half a
        minute."""
        began = time.monotonic()
        waited = 60 * _SHORT / 1000
        return all(self.fails(**params) for _ in range(60)) and time.monotonic() - began < 0.8 * waited

    def starts(self) -> list[int]:
        """Return the process IDs of the servers that the client started."""
        return [int(word) for word in self._started.read_text().split()] if self._started.exists() else []


class ClientConformance:
    """The suite. `driver`: the command that starts your driver."""

    driver: ClassVar[Sequence[str]]

    @contextmanager
    def drive(self, tmp_path: Path, server: str | Sequence[str], deadline: int = _SLOW) -> Iterator[Driven]:
        """Start the driver with a server, and yield it. `server`: the command of a server, or the code that a scripted
        server runs for each request. `deadline`: milliseconds."""
        started = tmp_path / "started"
        script = _SERVER + "".join(f"    {line}\n" for line in ([server] if isinstance(server, str) else ()))
        words = (sys.executable, "-c", script, str(started)) if isinstance(server, str) else server
        kept = {name: value for name, value in os.environ.items() if not name.startswith("READCACHE")}
        env = kept | {"READCACHE_STORE": str(tmp_path / "log.db")}
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [*self.driver, str(deadline), *words], env=env, stdin=pipe, stdout=pipe, encoding="utf-8"
        ) as process:
            try:
                yield Driven(process, started)
            finally:
                assert process.stdin is not None
                process.stdin.close()
                try:
                    process.wait(_SLOW / 1000)
                finally:
                    process.kill()

    # ------------------------------------------------------------ with the real server

    def test_what_is_visible_is_left_out(self, tmp_path: Path) -> None:
        with self.drive(tmp_path, _REAL) as client:
            first = client.ask("observe", command="cat song", output=_SONG, cwd="/w", call_id="one")["result"]
            again = client.ask("observe", command="head -n 20 song", output=_HALF, cwd="/w", call_id="two")["result"]
        assert (first["outcome"], first["text"]) == ("full", _SONG)
        assert again["text"].startswith("[UNCHANGED ")
        assert again["omitted"] == [{"path": "/w/song", "start": 1, "end": 20, "sources": ["one"]}]

    def test_readers_are_apart(self, tmp_path: Path) -> None:
        with self.drive(tmp_path, _REAL) as client:
            about: dict[str, Any] = {"command": "cat song", "output": _SONG, "cwd": "/w"}
            found = [client.ask("observe", agent, **about)["result"]["outcome"] for agent in ("main", "sub", "main")]
        assert found[:2] == ["full", "full"] != found[1:]

    def test_the_list_before_a_request_mends_what_lost_its_source(self, tmp_path: Path) -> None:
        with self.drive(tmp_path, _REAL) as client:
            client.ask("observe", command="cat song", output=_SONG, cwd="/w", call_id="one")
            marker = client.ask("observe", command="cat song", output=_SONG, cwd="/w", call_id="two")["result"]["text"]
            call = {"id": "two", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
            messages = [
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "two", "content": marker},
            ]
            rewrites = client.ask("sync", messages=messages)["result"]["rewrites"]
        assert rewrites.keys() == {"two"}

    def test_an_error_is_an_error_and_the_next_request_is_answered(self, tmp_path: Path) -> None:
        with self.drive(tmp_path, _REAL) as client:
            assert "error" in client.ask("observe", command=3)
            assert "result" in client.ask("stats")

    # ------------------------------------------------------------ messages on the wire

    @pytest.mark.parametrize(
        "text", ['"quoted" \\ and {braces} [of] \t a kind', "é 漢 𝄞 \u2028 \u0085 \x7f\r\n\x00", ""]
    )
    def test_any_text_comes_through(self, text: str, tmp_path: Path) -> None:
        with self.drive(tmp_path, "answer(request)") as client:
            assert client.ask("stats", output=text) == {"result": {"output": text}}

    def test_so_does_a_long_one(self, tmp_path: Path) -> None:
        with self.drive(tmp_path, "answer(request)") as client:
            assert client.ask("stats", output=_SONG * 3000) == {"result": {"output": _SONG * 3000}}

    def test_an_answer_may_come_in_pieces_and_with_more_fields(self, tmp_path: Path) -> None:
        first, second = '{"more": [{"id": 0}], "res', 'ult": {"id": 5}, "id": %d}'
        parts = f"say({first!r}, ''); time.sleep(0.1); say({second!r} % request['id'])"
        with self.drive(tmp_path, parts) as client:
            assert client.ask("stats") == {"result": {"id": 5}}

    def test_an_answer_to_another_request_is_not_taken(self, tmp_path: Path) -> None:
        others = 'say(\'{"id": null, "error": {"code": -32603}}\\n{"id": 999, "result": {}}\'); answer(request)'
        with self.drive(tmp_path, others) as client:
            assert client.ask("stats", of="it") == {"result": {"of": "it"}}

    # ------------------------------------------------------------ servers that fail

    def test_a_server_that_hangs_costs_one_deadline(self, tmp_path: Path) -> None:
        with self.drive(tmp_path, "time.sleep(60)", _SHORT) as client:
            assert client.fails()
            assert client.leaves_it_aside()
            assert len(client.starts()) == 1

    def test_so_does_one_that_reads_nothing(self, tmp_path: Path) -> None:
        with self.drive(tmp_path, ("sleep", "60"), _SHORT) as client:
            assert client.fails(output=_SONG * 3000)
            assert client.leaves_it_aside(output=_SONG * 3000)

    def test_one_that_was_late_is_asked_again(self, tmp_path: Path) -> None:
        with self.drive(tmp_path, "time.sleep(1.5 if count == 1 else 0); answer(request)", _SHORT * 2) as client:
            while "error" in client.ask("stats", number=0):  # a busy machine starts it late
                time.sleep(0.1)
            client.ask("stats", number=1)
            time.sleep(2)
            assert client.ask("stats", number=2) == {"result": {"number": 2}}
            assert len(client.starts()) == 1

    def test_one_that_died_is_started_again_and_not_for_ever(self, tmp_path: Path) -> None:
        with self.drive(tmp_path, "answer(request); sys.exit() if count else None") as client:
            answers = []
            for _ in range(20):
                answers.append(client.ask("stats", of="it"))
                time.sleep(0.05)
            assert answers[0] == {"result": {"of": "it"}}
            assert 1 < len(client.starts()) < 10
            assert "error" in answers[-1]

    @pytest.mark.parametrize("says", [*_NONSENSE, "sys.exit(3)"])
    def test_nonsense_is_no_answer(self, says: str, tmp_path: Path) -> None:
        with self.drive(tmp_path, says, _SHORT) as client:
            assert all(client.fails() for _ in range(12))
            assert len(client.starts()) < 10

    def test_without_a_program_nothing_is_lost(self, tmp_path: Path) -> None:
        with self.drive(tmp_path, ("/no/such/program",)) as client:
            assert all(client.fails() for _ in range(5))

    def test_the_server_ends_with_its_client(self, tmp_path: Path) -> None:
        with self.drive(tmp_path, "answer(request)") as client:
            client.ask("stats")
            (process,) = client.starts()
        until = time.monotonic() + _SLOW / 1000
        while _is_there(process):
            assert time.monotonic() < until, "the server is still there"
            time.sleep(0.05)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
