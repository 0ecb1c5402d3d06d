from __future__ import annotations

import resource
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from readcache.cli.main import main
from readcache.process import failures

Capture = pytest.CaptureFixture[str]


def findings(capfd: Capture, *arguments: str) -> dict[str, tuple[str, str]]:
    """What doctor says of each part: (ok or broken, the rest). Its status must say the same as its lines."""
    capfd.readouterr()
    status = main(["doctor", *arguments])
    lines = [line.split(None, 2) for line in capfd.readouterr().out.splitlines()]
    assert status == (1 if any(words[0] == "broken" for words in lines) else 0)
    return {words[1]: (words[0], words[2]) for words in lines}


def test_all_is_well_before_the_first_command_and_after_it(capfd: Capture, work: Path) -> None:
    found = findings(capfd)
    assert set(found) == {
        "python",
        "readcache",
        "bash",
        "mode",
        "store",
        "kept",
        "server",
        "session",
        "shims",
        "client",
        "failures",
        "results",
    }
    assert {verdict for verdict, _ in found.values()} == {"ok"}
    assert "none yet" in found["store"][1]
    assert not (work.parent / "state").exists()
    main(["run", "-c", "cat f"])
    found = findings(capfd)
    assert {verdict for verdict, _ in found.values()} == {"ok"}
    assert "intact" in found["store"][1]
    assert found["session"][1] == "s: main has 1 events"  # a call is logged when it was printed


def test_without_a_home_directory_every_check_is_made(capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "nowhere")
    found = findings(capfd)
    assert found["store"][0] == "broken"
    assert "no home directory" in found["store"][1]
    assert found["mode"] == ("ok", "on")


def test_a_broken_store_and_the_failures_that_it_caused_are_found(capfd: Capture, work: Path) -> None:
    (work / "garbage").write_text("no database " * 100)
    main(["run", "--store", "garbage", "-c", "cat f"])
    found = findings(capfd, "--store", "garbage")
    assert found["store"][0] == found["failures"][0] == "broken"
    assert "move it away" in found["store"][1]
    assert failures.path() in found["failures"][1]


def test_an_event_that_cannot_be_read_is_found(capfd: Capture, work: Path) -> None:
    main(["run", "-c", "cat f"])
    with closing(sqlite3.connect(work.parent / "state" / "readcache" / "readcache.db")) as db, db:
        db.execute("UPDATE events SET body = replace(body, 'call_id', 'kall_id')")
    verdict, says = findings(capfd)["store"]
    assert verdict == "broken"
    assert "event 1 in the store cannot be read" in says
    for expected in (b"line 1 of", b"[FILE_UNCHANGED"):
        capfd.readouterr()
        assert main(["run", "-c", "cat f"]) == 0
        assert capfd.readouterr().out.encode().startswith(expected)


def test_a_damaged_page_in_the_store_is_found(capfd: Capture, work: Path) -> None:
    for n in range(200):
        (work / f"f{n % 5}").write_text(f"{n}\n" * 400)
        if n % 40 == 0:
            main(["run", "--store", "db", "-c", "cat f0 f1"])
    data = bytearray((work / "db").read_bytes())
    data[-6000:-2000] = b"\xaa" * 4000
    (work / "db").write_bytes(data)
    assert findings(capfd, "--store", "db")["store"][0] == "broken"


def test_a_store_that_takes_no_event_is_found(capfd: Capture) -> None:
    main(["run", "--store", "db", "-c", "cat f"])
    with closing(sqlite3.connect("db", isolation_level=None)) as db:
        db.execute("CREATE TRIGGER no BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no'); END")
    assert findings(capfd, "--store", "db")["store"][0] == "broken"


def test_a_store_that_another_process_keeps_locked_is_found(capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readcache.log.store.sqlite_file.BUSY_SECONDS", 0.1)
    main(["run", "--store", "db", "-c", "cat f"])
    with closing(sqlite3.connect("db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        verdict, text = findings(capfd, "--store", "db")["store"]
    assert (verdict, "locked" in text) == ("broken", True)


def test_looking_at_a_store_leaves_nothing_in_it(capfd: Capture) -> None:
    main(["run", "--store", "db", "-c", "cat f"])
    with closing(sqlite3.connect("db", isolation_level=None)) as db:
        before = list(db.iterdump()), db.execute("PRAGMA user_version").fetchall()
        assert findings(capfd, "--store", "db")["store"][0] == "ok"
        assert (list(db.iterdump()), db.execute("PRAGMA user_version").fetchall()) == before


def test_control_characters_in_names_are_shown_and_not_sent(
    capfd: Capture, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "s\x1b]0;title\x07\x1b[31m\n\x9b1m"
    monkeypatch.setenv("READCACHE_SESSION", name)
    (work / name).write_bytes((work / "f").read_bytes())
    main(["run", "--", "cat", name])
    main(["run", "--call-id", name, "-c", "cat f"])
    main(["wrote", name])
    capfd.readouterr()
    for arguments in (
        ["doctor"], ["log"], ["stats"], ["explain", name], ["explain", "f"], ["explain", "f", "--agent", name],
        ["log", "--session", name + "x"], ["compacted", "--session", name + "x"], ["compacted", "--keep", name + "x"],
        ["run", f"--{name}"], ["run", "--clip", name, "true"], ["run", "--store", "x://" + name, "true"],
        ["log", "--store", name + ".db"], [name], ["shims", "install", name + ".d"], ["shims", "env", name],
        ["shims", "uninstall", name + ".d"], ["wrote", "x", "--content-file", name + ".txt"],
    ):  # fmt: skip
        main(arguments)
        out, err = capfd.readouterr()
        assert (out + err).strip()
        assert not [c for c in out + err if (c < " " and c != "\n") or "\x7f" <= c <= "\x9f"]
        assert err.count("\n") <= 1
    monkeypatch.delenv("READCACHE_SESSION")
    main(["log"])
    assert "\x1b" not in "".join(capfd.readouterr())


def test_a_disk_that_has_no_room_for_one_more_output_is_found(run: Callable[..., Any]) -> None:
    """Its few bytes more would have fitted."""
    run("run", "--store", "db", "-c", "cat f")

    def limit_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    told = run("doctor", "--store", "db", preexec_fn=limit_files)
    (line,) = [line for line in told.stdout.decode().splitlines() if line.split()[1] == "store"]
    assert line.startswith("broken")
    assert "takes no more: File too large" in line
    assert told.returncode == 1


def test_doctor_says_what_is_kept_where_and_for_how_long(
    capfd: Capture, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = work.parent / "state/readcache/readcache.db"
    says = f"in {store}, for 30 days after a session's last call; `readcache clear` deletes it"
    assert says in findings(capfd)["kept"][1]
    monkeypatch.setenv("READCACHE_KEEP", "forever")
    assert f"in {store}, with no time limit;" in findings(capfd)["kept"][1]
    monkeypatch.setenv("READCACHE_STORE", "db")
    assert f"in {work / 'db'}, with no time limit;" in findings(capfd)["kept"][1]
    monkeypatch.setenv("READCACHE_STORE", "redis://user:word@nowhere/1?expire=7")
    assert "in redis://nowhere/1, for as long as that store's URL says" in findings(capfd)["kept"][1]


def test_a_place_where_no_store_can_be_made_is_found(capfd: Capture) -> None:
    assert findings(capfd, "--store", "f/below/a/file.db")["store"][0] == "broken"


@pytest.mark.parametrize("value", ["of", "2"])
def test_a_value_of_readcache_that_means_nothing_is_found(
    capfd: Capture, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("READCACHE", value)
    assert findings(capfd)["mode"][0] == "broken"


def test_a_missing_bash_is_found(capfd: Capture, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(work))
    assert findings(capfd)["bash"][0] == "broken"


def test_the_file_of_failures_does_not_grow_for_ever(work: Path) -> None:
    for _ in range(2000):
        failures.note("s", "store_failed", "x" * 500)
    assert (work.parent / "state" / "readcache" / "failures.log").stat().st_size < failures.MOST_BYTES + 1000
