"""The command line with a store on a Redis server."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from readcache.cli.main import main
from readcache.process import failures
from tests.helpers.redis_server import Server

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def server(work: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    assert work
    running = Server("--appendonly", "no")
    monkeypatch.setenv("READCACHE_STORE", running.url.replace("unix://", "unix://default:secret@"))
    yield running
    running.close()


def test_commands_of_processes_each_are_judged_by_what_the_others_showed(server: Server, run: Run, work: Path) -> None:
    assert server
    assert run("run", "-c", "cat f").stdout == (work / "f").read_bytes()
    second = run("run", "-c", "head -n 150 f")
    assert b"UNCHANGED" in second.stdout
    assert run("run", "-c", "exit 9").returncode == 9
    assert failures.noted() == []


def test_doctor_says_whether_the_server_can_be_reached(server: Server, capfd: Capture) -> None:
    def line(name: str) -> str:
        main(["doctor"])
        return next(line for line in capfd.readouterr().out.splitlines() if line.split()[1] == name)

    assert line("store").startswith("ok")
    assert "reachable, version" in line("store")
    assert "kept for 30 days" in line("store")
    server.kill()
    assert line("store").startswith("broken")
    assert "check that the server runs" in line("store")
    assert "secret" not in line("store") + line("session")


def test_sessions_are_listed_and_taken_out(server: Server, run: Run, capfd: Capture) -> None:
    assert server
    run("run", "-c", "cat f")
    assert main(["sessions", "--json"]) == 0
    listed = json.loads(capfd.readouterr().out)
    assert [row["session"] for row in listed["sessions"]] == ["s"]
    assert listed["bytes"] > 0
    assert main(["log"]) == 0
    assert "cat f" in capfd.readouterr().out
    assert main(["clear", "--all", "--yes"]) == 0
    assert "deleted 1 session" in capfd.readouterr().out
    assert main(["sessions", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["sessions"] == []


def test_without_the_server_every_byte_is_shown_and_what_cannot_be_told_is_an_error(
    server: Server, run: Run, work: Path, capfd: Capture
) -> None:
    run("run", "-c", "cat f")
    server.kill()
    reply = run("run", "-c", "cat f; exit 9")
    assert (reply.returncode, reply.stdout, reply.stderr) == (9, (work / "f").read_bytes(), b"")
    assert len(failures.noted()) > 0
    for command in (["compacted"], ["stats"], ["sessions"]):
        capfd.readouterr()
        assert main(command) == 1
        err = capfd.readouterr().err
        assert "check that the server runs" in err
        assert "secret" not in err


def test_without_the_package_every_byte_is_shown_and_an_option_says_what_to_install(run: Run, work: Path) -> None:
    hidden = work.parent / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys\nsys.modules['redis'] = None\n")
    env = {**os.environ, "PYTHONPATH": f"{hidden}:{os.environ.get('PYTHONPATH', '')}"}
    spec = "redis://localhost:1/0"
    reply = run("run", "-c", "cat f; exit 9", env={**env, "READCACHE_STORE": spec})
    assert (reply.returncode, reply.stdout, reply.stderr) == (9, (work / "f").read_bytes(), b"")
    named = run("run", "--store", spec, "-c", "touch ran", env=env)
    assert named.returncode == 2
    assert b"pip install 'readcache[redis]'" in named.stderr
    assert not (work / "ran").exists()
    report = run("doctor", env={**env, "READCACHE_STORE": spec})
    assert b"pip install 'readcache[redis]'" in report.stdout


NOWHERE = "redis://user:secret@127.0.0.1:1/0"
CALL = {"command": "cat f", "output": "text\n", "cwd": "/w"}


def test_a_server_that_cannot_be_reached_is_said_once(run: Run) -> None:
    head = {"jsonrpc": "2.0", "id": 1, "method": "observe"}
    requests = [json.dumps({**head, "params": {**CALL, "conversation": name}}).encode() for name in ("a", "b")]
    served = run("serve", "--store", NOWHERE, stdin=b"\n".join(requests))
    assert [json.loads(line)["result"]["reason"] for line in served.stdout.splitlines()] == ["store_failed"] * 2
    told = served.stderr.decode()
    assert told.count("redis://127.0.0.1:1/0") == 1
    assert "check that the server runs" in told
    assert "secret" not in told


def test_a_hook_says_nothing_of_it(run: Run) -> None:
    event: dict[str, object] = {
        "session_id": "s",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "cwd": "/w",
        "tool_use_id": "1",
    }
    event |= {"tool_input": {"command": "cat f"}, "tool_response": {"stdout": "text\n", "stderr": ""}}
    hooked = run("hook", "claude-code", "--store", NOWHERE, stdin=json.dumps(event).encode())
    assert (hooked.returncode, hooked.stderr) == (0, b"")
    assert len(failures.noted()) == 1
