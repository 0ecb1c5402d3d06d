"""The presets by their names, everywhere where one is chosen: as an option and in the environment.

A file that changes between two reads tells them apart: by default it is shown in full, else only what is new in it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from readcache import Policy, UsageError
from readcache.cli.main import main
from readcache.cli.shim_files import find_client
from readcache.hosts import find_host
from readcache.hosts.host import InstallTarget
from tests.helpers.files import WATCHDOG
from tests.shims.sandbox import ROOT, Sandbox, make_sandbox

Env = Mapping[str, str]
Way = Callable[[Path, Sequence[str], Env], str]  # the directory, the options, the variables


def song(verse: int) -> str:
    """Of 40 lines; the 20th says which verse it is."""
    return "".join(f"{n} bottles of beer on the wall{f', verse {verse}' if n == 20 else ''}\n" for n in range(40))


def start(words: Sequence[str], env: Env) -> subprocess.Popen[bytes]:
    pipe, env = subprocess.PIPE, {"PATH": os.environ["PATH"], **env}
    return subprocess.Popen(words, env=env, stdin=pipe, stdout=pipe, stderr=pipe)


def said(words: Sequence[str], env: Env, stdin: bytes = b"") -> str:
    with start(words, env) as process:
        out, err = process.communicate(stdin, timeout=WATCHDOG)
    assert (process.returncode, err) == (0, b"")
    return out.decode()


def readcache(*words: str) -> list[str]:
    return [sys.executable, "-m", "readcache", *words]


# ---------------------------------------------------------------- the ways: what the second read of the file shows


def by_run(directory: Path, words: Sequence[str], env: Env) -> str:
    for verse in (1, 2):
        (directory / "song").write_text(song(verse))
        shown = said(readcache("run", "--session", "s", *words, "-c", "cat song"), env)
    return shown


def by_serve(directory: Path, words: Sequence[str], env: Env) -> str:
    return replies(said(readcache("serve", *words), env, asked(directory)))


def by_serve_on_a_socket(directory: Path, words: Sequence[str], env: Env) -> str:
    path = str(directory / "socket")
    with start(readcache("serve", "--socket", path, *words), env) as server:
        try:
            deadline = time.monotonic() + WATCHDOG
            while not os.path.exists(path) and time.monotonic() < deadline:
                time.sleep(0.02)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                client.sendall(asked(directory))
                with client.makefile() as answers:
                    return replies("".join(answers.readline() for _ in (1, 2)))
        finally:
            server.terminate()
            server.communicate(timeout=WATCHDOG)


def asked(directory: Path) -> bytes:
    """Requests of a server, a line each."""
    given = [{"command": "cat song", "output": song(verse), "cwd": str(directory)} for verse in (1, 2)]
    head = {"jsonrpc": "2.0", "method": "observe"}
    requests = ({**head, "id": n, "params": {"conversation": "c", **each}} for n, each in enumerate(given))
    return "".join(json.dumps(request) + "\n" for request in requests).encode()


def replies(answers: str) -> str:
    return str(json.loads(answers.splitlines()[1])["result"]["text"])


def by_a_hook(directory: Path, words: Sequence[str], env: Env) -> str:
    events = [dict(event) for event in find_host("codex").trial(str(directory))]
    for verse, event in enumerate(events, 1):
        event["tool_response"] = song(verse)
        rollout = Path(event["transcript_path"])
        first = json.dumps(f"Process exited with code 0\nOutput:\n{song(1)}")
        lines = [json.loads(line) for line in rollout.read_text().splitlines()]
        for entry in lines:
            if "output" in entry["payload"]:
                entry["payload"]["output"] = json.loads(first)
        rollout.write_text("".join(json.dumps(entry) + "\n" for entry in lines))
        shown = said(readcache("hook", "codex", *words), env, json.dumps(event).encode())
    return str(json.loads(shown)["reason"]) if shown else song(2)


WAYS = {"run": by_run, "serve": by_serve, "serve on a socket": by_serve_on_a_socket, "hook": by_a_hook}


@pytest.fixture
def env(tmp_path: Path, work: Path) -> dict[str, str]:
    """The variables of a process with a state directory of its own; `work` is its directory."""
    assert work == Path.cwd()
    return {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_environment_chooses_a_preset_and_an_option_overrides_it(way: Way, env: Env, tmp_path: Path) -> None:
    shown = way(Path.cwd(), [], {**env, "READCACHE_POLICY": "delta"})
    assert ("verse 2" in shown, len(shown) < 500) == (True, True)
    other = {**env, "XDG_STATE_HOME": str(tmp_path / "another"), "READCACHE_POLICY": "max"}
    (tmp_path / "other").mkdir()
    os.chdir(tmp_path / "other")
    assert way(Path.cwd(), ["--policy", "default"], other) == song(2)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_an_option_protects_files_at_every_door(way: Way, env: Env) -> None:
    """A file is read twice, and by the preset only what is new in it would be shown."""
    assert way(Path.cwd(), ["--policy", "delta", "--protected", "*.key,song,file"], env) == song(2)


# ---------------------------------------------------------------- shims


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    return make_sandbox(tmp_path_factory.mktemp("sandbox"), find_client())


@pytest.mark.slow
@pytest.mark.parametrize(("way", "preset"), [("option", "default"), ("option", "max"), ("environment", "delta")])
@pytest.mark.parametrize("launch", [[], ["--launch"], ["--whole-command"]], ids=["eval", "launch", "whole command"])
def test_the_exports_of_shims_choose_a_preset(
    sandbox: Sandbox, launch: Sequence[str], way: str, preset: str, env: Env
) -> None:
    words, more = (["--policy", preset], {}) if way == "option" else ([], {"READCACHE_POLICY": preset})
    given = ["--session", "s", "--store", str(sandbox.store), *launch, *words]
    exports = said(readcache("shims", "env", str(sandbox.shims), *given), {**env, **more})
    sandbox.reset()
    own = dict(entry.split("=", 1) for entry in exports_of(exports)) if launch else {}
    for verse in (1, 2):
        (sandbox.directory / "song").write_text(song(verse))
        command = "cat song" if launch else f"{exports}\ncat song"
        shown = subprocess.run(
            ["bash", "-c", command],
            # A client would do without a server that is slow because the machine is busy.
            env=sandbox.env(READCACHE="on", READCACHE_SERVER="off", PYTHONPATH=str(ROOT), **own),
            cwd=sandbox.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    assert ("verse 2" in shown, len(shown) < 500) == (True, preset != "default")


def exports_of(script: str) -> list[str]:
    words = ["bash", "-c", f"{script}\nunset SHLVL _ PWD; env -0"]
    printed = subprocess.run(words, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True).stdout
    return [entry for entry in printed.split("\0") if entry.startswith(("READCACHE", "BASH_ENV"))]


# ---------------------------------------------------------------- what presets are, and what is none


def test_each_preset_leaves_out_what_the_one_before_it_does_and_more() -> None:
    chosen = [Policy.named(name) for name in ("default", "delta", "max")]
    assert chosen[0] == Policy()
    assert [(policy.delta, policy.any_output) for policy in chosen] == [(False, False), (True, False), (True, True)]


@pytest.mark.parametrize("words", [["shims", "env", "."], ["init", "codex"], ["serve"], ["mcp"], ["run", "-c", "true"]])
def test_an_option_that_names_no_preset_is_an_error(words: Sequence[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--policy", "most"]) == 2
    assert "unknown policy 'most': choose from default, delta, max" in capfd.readouterr().err
    with pytest.raises(UsageError):
        Policy.named("most")


@pytest.mark.parametrize("has_mcp", [False, True], ids=["processes", "server"])
@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini", "mini-swe-agent"])
def test_a_host_is_told_a_preset_that_was_asked_for_and_else_the_environment_has_its_say(
    name: str, has_mcp: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_mcp:  # the package, as far as it is looked for
        (tmp_path / "packages").mkdir()
        (tmp_path / "packages/mcp.py").touch()
        monkeypatch.syspath_prepend(tmp_path / "packages")

    def told(policy: str) -> str:
        target = InstallTarget("/project", "/home/me", False, ("readcache",), "on", policy)
        return repr(find_host(name).changes(target))

    assert "delta" in told("delta")
    assert "policy" not in told("default")


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini", "opencode", "mini-swe-agent"])
def test_a_host_is_told_which_files_to_protect(name: str) -> None:
    target = InstallTarget("/project", "/home/me", False, ("readcache",), "on", "default", protected="*.key,it's me")
    told = repr(find_host(name).changes(target))
    assert "*.key,it" in told
    assert "protected" in told
