"""What people do wrong, and what they are told: in one line what happened, to what, and what to do."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from readcache.cli.main import main

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
Capture = pytest.CaptureFixture[str]


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("doctor",), ("demo",), ("stats", "--json")])
def test_a_full_disk_under_stdout_is_no_bug(
    run: Run, words: tuple[str, ...], unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("run", "-c", "cat f")
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "wb") as full:
        done = run(*words, stdout=full)
    assert done.returncode == 1
    assert (
        done.stderr
        == b"readcache: cannot write the output: No space left on device; make room, or send stdout elsewhere\n"
    )


def test_a_python_that_is_too_old_is_named() -> None:
    program = """
import sys
sys.version_info = (3, 9, 18, "final", 0)
from readcache.cli.start import start_command_line
sys.exit(start_command_line(["demo"]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    said = f"readcache: {sys.executable} is Python 3.9.18, and readcache needs 3.10 or later: use another one\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--idle", "9"), "--idle only applies with --on-demand: any other server runs until it is stopped"),
        (
            ("--socket", "x", "--idle", "9"),
            "--idle only applies with --on-demand: any other server runs until it is stopped",
        ),
        (
            ("--socket", "x", "--stop"),
            "--stop stops servers that were started on demand; send SIGTERM to one with --socket",
        ),
    ],
)
def test_an_option_that_a_server_would_not_heed_is_an_error(capfd: Capture, words: tuple[str, ...], said: str) -> None:
    assert main(["serve", *words]) == 2
    assert capfd.readouterr().err == f"readcache: {said}\n"


@pytest.mark.parametrize(
    "words",
    [
        ("shims", "install", ""),
        ("wrote", ""),
        ("explain", ""),
        ("replay", ""),
        ("report", "-o", ""),
        ("serve", "--socket", ""),
        ("doctor", "--shims", ""),
        ("mcp", "--root", ""),
        ("compacted", "--restored", ""),
    ],
)
def test_an_empty_path_is_not_the_working_directory(capfd: Capture, work: Path, words: tuple[str, ...]) -> None:
    """As `readcache shims install "$PLACE"` says it where PLACE is not set."""
    assert main(list(words)) == 2
    assert f": the path is empty: give one; see readcache {words[0]} --help" in capfd.readouterr().err
    assert [path.name for path in work.iterdir()] == ["f"]


@pytest.mark.usefixtures("work")
def test_who_names_a_session_that_is_not_there_is_told_where_they_are_listed(capfd: Capture) -> None:
    main(["run", "-c", "cat f"])
    capfd.readouterr()
    assert main(["stats", "--session", "misspelt"]) == 1
    assert capfd.readouterr().err.endswith(": see `readcache sessions`\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["repaly"], "unknown command 'repaly' (did you mean replay?); see readcache --help"),
        (["xyzzy"], "unknown command 'xyzzy'; see readcache --help"),
        (["--nope"], "--nope stands before the command: give the command first; see readcache --help"),
        (
            ["--session", "s1", "wrote"],
            "--session stands before the command: give the command first; see readcache --help",
        ),
        (
            ["init", "codex", "--polcy=max"],
            "unrecognized arguments: --polcy=max (did you mean --policy?); see readcache init --help",
        ),
        (
            ["run", "--sesion", "a", "ls"],
            "run: option --sesion not recognized (did you mean --session?); see readcache run --help",
        ),
        (["gain", "--by", "hour"], "argument --by: invalid choice: 'hour'"),
    ],
)
def test_what_is_misspelt_is_named_with_what_was_meant(capfd: Capture, words: list[str], said: str) -> None:
    assert main(words) == 2
    assert capfd.readouterr().err.startswith(f"readcache: {said}")


@pytest.mark.parametrize("command", ["init", "uninit", "doctor"])
def test_a_misspelt_host_is_named_with_the_one_that_was_meant(capfd: Capture, command: str) -> None:
    assert main([command, *(["--host"] if command == "doctor" else []), "claude"]) == 2
    assert (
        "unknown host 'claude' (did you mean claude-code?): choose one of claude-code, codex" in capfd.readouterr().err
    )


READS: tuple[list[str], ...] = (
    *(
        ["gain"],
        ["gain", "--short"],
        ["doctor"],
        ["log"],
        ["stats"],
        ["explain", "f"],
        ["sessions"],
        ["report"],
        ["verify"],
    ),
    *(["clear", "--all", "--yes"], ["restore"], []),
)
WRITES = (["run", "-c", "cat f"], ["wrote", "f"], ["compacted"], ["hook", "claude-code"])


@pytest.mark.slow
@pytest.mark.parametrize("words", [*READS, *WRITES], ids=" ".join)
def test_a_file_that_is_no_store_is_left_as_it_is(
    run: Run, work: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text of each length that SQLite has an opinion on, a script, another program's database; where the command only
    reads, an empty file."""
    texts = ["x", "x" * 20, "x" * 700, "dear diary, " * 1000]
    files = {f"note{size}.txt": (text.encode(), 0o644) for size, text in enumerate(texts)}
    files |= {"script": (b"#!/bin/sh\necho it runs\n", 0o755)}
    files |= {"empty": (b"", 0o644)} if words in READS else {}
    with closing(sqlite3.connect(work / "theirs.db")) as db, db:
        db.execute("CREATE TABLE diary (day)")
    files["theirs.db"] = (work / "theirs.db").read_bytes(), 0o644
    for name, (content, mode) in files.items():
        (work / name).write_bytes(content)
        (work / name).chmod(mode)
    before = {path: (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes()) for path in work.iterdir()}
    for name in files:
        monkeypatch.setenv("READCACHE_STORE", str(work / name))
        run(*words)
    assert {
        path: (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes()) for path in work.iterdir()
    } == before


@pytest.mark.parametrize(
    "number", ["99999999999999999999", "9" * 5000, "-1", "1.5", "\u0661"], ids=lambda number: number[:21]
)
@pytest.mark.parametrize(
    "words",
    [
        ["init", "gemini", "--restore", "{}"],
        ["run", "--clip", "{}", "-c", "true"],
        ["run", "--clip", "5,{}", "-c", "true"],
        ["mcp", "--horizon={}"],
        ["restore", "--max-files={}"],
        ["restore", "--max-tokens={}"],
        ["serve", "--on-demand", "--idle={}"],
        ["serve", "--metrics", "127.0.0.1:{}"],
        ["replay", "--conversation", "compact:{}"],
        ["replay", "--conversation", "clear:{}:5"],
    ],
    ids=" ".join,
)
def test_a_number_that_nobody_can_mean_is_an_error(run: Run, work: Path, words: list[str], number: str) -> None:
    done = run(*(word.format(number) for word in words))
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"readcache: ")
    assert not (work.parent / "home").exists()


@pytest.mark.parametrize("age", ["99999999999999999999d", "9" * 5000 + "w"], ids=["20 digits", "5000 digits"])
def test_an_age_from_before_the_first_session_means_all_of_them(run: Run, age: str) -> None:
    run("run", "-c", "cat f")
    for words in (["gain", "--since", age, "--json"], ["clear", "--older-than", age], ["sessions"]):
        assert run(*words).returncode == 0, words
    assert b" s\n" in run("sessions").stdout


@pytest.mark.parametrize("more", [[], ["--session", "s"]])
def test_a_socket_in_a_directory_that_is_not_there_is_an_error(run: Run, work: Path, more: list[str]) -> None:
    done = run("serve", "--socket", "nosuch/x", *more)
    todo = "create the directory with mode 0700, or give another --socket"
    said = f"readcache: cannot create a socket at {work}/nosuch/x: {work}/nosuch does not exist; {todo}\n"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", said)
    assert [path.name for path in work.iterdir()] == ["f"]


def test_a_root_that_is_no_directory_is_an_error(run: Run) -> None:
    pytest.importorskip("mcp")
    done = run("mcp", "--root", "nosuch")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"readcache: --root nosuch is not a directory: give the project's\n"
