"""`readcache off` and `on`: by each door that is open already, too."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from readcache import Policy, Reason, Session, __version__
from readcache.cli.main import main
from readcache.cli.status import PAUSED
from readcache.hosts import find_host
from readcache.hosts.hooks import hook_answer
from readcache.process.settings import read_settings
from readcache.process.state import is_off
from readcache.serve.hooks import ServedHooks
from readcache.serve.mcp.readers import McpReaders

Capture = pytest.CaptureFixture[str]
Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
Ask = Callable[..., Any]


@pytest.fixture(params=["python", "client"])
def way(request: pytest.FixtureRequest) -> str:
    """`run` by a process of its own, and by the client of a server that runs already."""
    return str(request.param)


def switch(word: str) -> None:
    assert main([word]) == 0


def test_nothing_is_omitted_while_it_is_off(run: Run, work: Path) -> None:
    real = (work / "f").read_bytes()
    assert run("run", "-c", "cat f").stdout == real
    switch("off")
    assert [run("run", "-c", "cat f").stdout for _ in range(2)] == [real, real]
    assert b"READCACHE_INSIDE" not in run("run", "-c", "env").stdout
    switch("on")
    assert run("run", "-c", "cat f").stdout.startswith(b"[FILE_UNCHANGED")


def test_what_was_shown_while_it_was_off_is_no_source(run: Run, work: Path) -> None:
    real = (work / "f").read_bytes()
    switch("off")
    assert run("run", "-c", "cat f").stdout == real
    switch("on")
    assert run("run", "-c", "cat f").stdout == real


@pytest.mark.parametrize("command", ["sed -i s/line/LINE/ f", "sed -i '1,9s/line/LINE/' f", "truncate -s 40 f"])
def test_a_write_while_it_was_off_is_seen(run: Run, work: Path, command: str) -> None:
    run("run", "-c", "cat f")
    switch("off")
    run("run", "-c", command)
    switch("on")
    shown = run("run", "-c", "cat f").stdout
    now = (work / "f").read_bytes()
    assert shown == now or {line for line in now.split(b"\n") if b"LINE" in line} <= {*shown.split(b"\n")}
    assert b"FILE_UNCHANGED" not in shown


@pytest.mark.usefixtures("run")
def test_what_a_harness_tells_is_heeded_while_it_is_off(run: Run, work: Path) -> None:
    run("run", "-c", "cat f")
    switch("off")
    assert run("compacted").returncode == 0
    switch("on")
    assert run("run", "-c", "cat f").stdout == (work / "f").read_bytes()


@pytest.fixture
def ask() -> Iterator[Ask]:
    """One request to a `readcache serve` that was started before."""
    words = [sys.executable, "-m", "readcache", "serve"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        to, answers = server.stdin, server.stdout

        def ask_server(method: str, **params: object) -> Any:
            given = {"conversation": "c", **params}
            to.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": given}) + "\n")
            to.flush()
            return json.loads(answers.readline())["result"]

        yield ask_server
        to.close()


def test_a_server_that_runs_already_heeds_it(ask: Ask, work: Path) -> None:
    output = (work / "f").read_text()
    observe = {"command": "cat f", "output": output}
    ask("observe", **observe, call_id="one")
    switch("off")
    assert ask("observe", **observe, call_id="two")["reason"] == "mode_off"
    assert ask("observe", command="echo >g", output="", call_id="three")["text"] == ""
    switch("on")
    assert ask("observe", **observe, call_id="four")["text"].startswith("[FILE_UNCHANGED")


def test_a_compaction_while_a_server_is_off_is_heeded(ask: Ask, work: Path) -> None:
    observe = {"command": "cat f", "output": (work / "f").read_text()}
    ask("observe", **observe)
    switch("off")
    ask("compacted")
    ask("observe", **observe)
    switch("on")
    assert ask("observe", **observe)["text"] == observe["output"]


def test_hooks_of_a_server_that_runs_already_heed_it(work: Path) -> None:
    first, second = (json.dumps(event).encode() for event in find_host("codex").trial(str(work)))
    hooks = ServedHooks(str(work / "db"), hook_answer)
    sessions = hooks.lend("/", "codex", read_settings({}))

    def answer(event: bytes) -> str:
        return hook_answer("codex", event, sessions)

    assert answer(first) == ""
    switch("off")
    assert answer(second) == ""
    switch("on")
    assert "UNCHANGED" in answer(second)
    hooks.close()


def test_the_mcp_server_heeds_it(work: Path) -> None:
    readers = McpReaders(str(work), policy=Policy(), one_reader=True)
    session = readers.session_of({})
    session.read("f")
    switch("off")
    assert session.read("f").reason is Reason.MODE_OFF
    assert session.fork("other").read("f").reason is Reason.MODE_OFF
    switch("on")
    assert session.read("f").reason is Reason.COVERED
    readers.close()


def test_later_output_counts_for_a_horizon_also_while_it_is_off(work: Path) -> None:
    off = False
    with Session(work, policy=Policy(horizon_tokens=3_000), is_off=lambda: off) as session:
        session.run("cat f")
        off = True
        for _ in range(3):
            session.run("cat f")
        off = False
        assert session.run("cat f").text == (work / "f").read_text()


def test_a_session_in_a_program_asks_nobody(work: Path) -> None:
    switch("off")
    with Session(work) as session:
        session.read("f")
        assert session.read("f").reason is Reason.COVERED


def test_it_is_said(capfd: Capture) -> None:
    switch("on")
    assert capfd.readouterr().out == "on already\n"
    switch("off")
    switch("off")
    capfd.readouterr()
    main(["doctor"])
    assert "  mode       off (`readcache off`): everything is shown;" in capfd.readouterr().out
    switch("on")
    assert capfd.readouterr().out == "on again; what was shown meanwhile will be shown again\n"


def test_where_there_is_no_home_it_is_on(monkeypatch: pytest.MonkeyPatch, capfd: Capture) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "nowhere")
    assert not is_off()
    assert main(["off"]) == 2
    assert "no home directory" in capfd.readouterr().err


def test_to_look_takes_microseconds() -> None:
    """A tenth of a millisecond is a twentieth of the least that a call takes."""
    began = time.perf_counter()
    for _ in range(1_000):
        is_off()
    assert (time.perf_counter() - began) / 1_000 < 1e-4


def test_alone_it_says_where_things_stand(capfd: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def said() -> list[str]:
        capfd.readouterr()
        assert main([]) == 0
        return capfd.readouterr().out.splitlines()

    assert said() == [
        f"readcache {__version__}: on",
        "hosts: none is switched on here, or for all of your projects",
        "last session: none yet",
        "next: `readcache init HOST` switches an agent on; `readcache demo` shows what it is about",
    ]
    assert not (tmp_path / "state").exists()
    main(["init", "gemini", "--user"])
    main(["run", "-c", "cat f"])
    first, hosts, session, following = said()
    assert hosts == "hosts: gemini advise (--user)"
    assert session.startswith("last session: s, 2")
    assert following.startswith("next: `readcache doctor`")
    switch("off")
    assert said()[0] == f"{first.removesuffix('on')}{PAUSED}"
    assert said()[-1] == "next: `readcache on`"
