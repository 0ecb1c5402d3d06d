"""`wrote`, `compacted`, `prune`, `compact`: what a harness in another language tells, by a process for each word."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from readcache.cli import harness
from readcache.cli.main import main

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
Capture = pytest.CaptureFixture[str]


def shows_all(run: Run, command: str) -> bool:
    """Every byte of what the command prints comes."""
    plain = subprocess.run(["bash", "-c", command], capture_output=True, check=True).stdout
    return run("run", "-c", command).stdout == plain


# ------------------------------------------------------------ wrote


def test_after_a_write_by_a_tool_of_the_harness_the_file_is_shown(run: Run) -> None:
    assert shows_all(run, "cat f")
    assert run("wrote", "f").returncode == 0
    assert shows_all(run, "cat f")
    assert not shows_all(run, "sed -n '1,200p' f")


def test_a_content_that_the_agent_wrote_itself_counts_as_seen_even_as_the_first_that_is_told(
    run: Run, work: Path
) -> None:
    content = "".join(f"{n}: a line that the agent wrote itself\n" for n in range(40))
    (work / "g").write_text(content)
    (work / "h").write_text(content.upper())
    assert run("wrote", "g", "--content-file", "-", stdin=content.encode()).returncode == 0
    assert run("wrote", "h", "--content-file", "h").returncode == 0
    assert not shows_all(run, "cat g")
    assert not shows_all(run, "cat h")


def test_a_relative_path_is_one_of_the_working_directory(run: Run, work: Path) -> None:
    assert shows_all(run, "cat f")
    (work / "sub").mkdir()
    assert run("wrote", "../f", cwd=work / "sub").returncode == 0
    assert shows_all(run, "cat f")


def messages(*results: tuple[str, str]) -> bytes:
    """An agent's conversation in OpenAI's shape, with the results of calls by id."""
    out: list[dict[str, object]] = [{"role": "user", "content": "go on"}]
    for call_id, text in results:
        call = {"id": call_id, "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        out.append({"role": "assistant", "content": None, "tool_calls": [call]})
        out.append({"role": "tool", "tool_call_id": call_id, "content": text})
    return json.dumps(out).encode()


def test_what_is_no_list_of_messages_changes_nothing(run: Run) -> None:
    assert shows_all(run, "cat f")
    for given in (b"", b"{}", b"[1]", b"[" * 100_000):
        told = run("restore", "--messages", "-", stdin=given)
        assert (told.returncode, told.stdout, told.stderr.count(b"\n")) == (2, b"", 1)
        assert b"stdin" in told.stderr
    assert not shows_all(run, "cat f")


# ------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize("name", ["settle", "rewind", "sync", "completion"])
def test_a_command_of_the_first_builds_names_what_to_use_instead(capfd: Capture, name: str) -> None:
    assert main([name, "a"]) == 2
    assert f"{name} was removed: " in capfd.readouterr().err


@pytest.mark.parametrize("command", [["wrote", "f"], ["compacted"]])
def test_a_word_of_no_session_is_a_usage_error(
    capfd: Capture, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.delenv("READCACHE_SESSION")
    assert main(command) == 2
    assert "READCACHE_SESSION" in capfd.readouterr().err


def test_a_file_that_cannot_be_read_is_a_usage_error(capfd: Capture) -> None:
    for command in (["wrote", "f", "--content-file", "nosuch"], ["compacted", "--restored", "."]):
        assert main(command) == 2
        assert capfd.readouterr().err.count("\n") == 1


@contextmanager
def locked(work: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """Somebody else's transaction on the store, for which one transaction of ours waits a moment only."""
    monkeypatch.setattr("readcache.log.store.sqlite_file.BUSY_SECONDS", 0.1)
    path = work.parent / "state/readcache/readcache.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


@pytest.mark.slow
def test_a_store_that_is_locked_for_a_while_is_waited_for(
    capfd: Capture, run: Run, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than one transaction waits."""
    assert shows_all(run, "cat f")
    with locked(work, monkeypatch) as other:
        timer = threading.Timer(1.0, other.execute, ["ROLLBACK"])
        timer.start()
        status = main(["compacted"])
        timer.join()
    out, err = capfd.readouterr()
    assert (status, json.loads(out)["rewrites"], err) == (0, {}, "")
    assert shows_all(run, "cat f")


@pytest.mark.parametrize("words", [["compacted"], ["prune", "list.json"], ["compact", "list.json"]])
def test_a_store_that_stays_locked_is_said_and_nothing_else(
    words: list[str], capfd: Capture, run: Run, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("run", "-c", "cat f")
    (work / "list.json").write_bytes(messages(*[(f"c{n}", f"{n} is said here\n" * 900) for n in range(5)]))
    monkeypatch.setattr(harness, "PATIENCE", 0.0)
    with locked(work, monkeypatch):
        assert main(words) == 1
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "locked" in err
    assert "new session" in err
    assert "nothing of session" not in err
