"""`sessions` and `clear`, ages, and the tidying of the store that nobody named."""

from __future__ import annotations

import json
import os
import pty
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from readcache import Outcome, Policy, Session, UsageError
from readcache.cli.main import main
from readcache.core.judging.removal import RULES
from readcache.log import retention
from readcache.log.store.sqlite import SqliteStore
from readcache.process import tidy
from readcache.process.tidy import age_seconds, seconds_of
from tests.helpers.files import TEXT, text, wait_until

Capture = pytest.CaptureFixture[str]
DAY = 86_400


@pytest.fixture
def store(work: Path) -> Path:
    return work / "log.db"


def fill(store: Path, ages: dict[str, float], lines: int = 40) -> None:
    """A session for each name, whose last event is so many days old."""
    store.parent.mkdir(parents=True, exist_ok=True)
    for name, days in ages.items():
        with Session("/w", session_id=name, store=store, clock=lambda days=days: time.time() - days * DAY) as session:  # type: ignore[misc]
            session.observe(f"cat {name}", text(of=name) * lines)


def names(capsys: Capture, *words: str) -> list[str]:
    assert main(["sessions", "--json", *words]) == 0
    return [row["session"] for row in json.loads(capsys.readouterr().out)["sessions"]]


# ------------------------------------------------------------ ages


def test_ages_are_hours_days_or_weeks() -> None:
    assert age_seconds("36h", "--since") == 36 * 3600
    assert age_seconds("2w", "--since") == 14 * DAY
    with pytest.raises(UsageError, match="invalid --since '5 days'"):
        age_seconds("5 days", "--since")


def test_a_moment_is_a_date_or_an_age() -> None:
    assert seconds_of("36h", 1e9, "--since") == 1e9 - 36 * 3600
    assert seconds_of("2001-09-09T01:46:40+00:00", 0, "--since") == 1e9
    assert seconds_of("2026-11-01", 0, "") == seconds_of("20261101", 0, "") == seconds_of("2026-11-01T00:00", 0, "")
    assert seconds_of("2026-11-01", 0, "--until", is_end=True) == seconds_of("2026-11-02", 0, "--until")
    with pytest.raises(UsageError, match="--since 'last week' is neither a date"):
        seconds_of("last week", 0, "--since")


# ------------------------------------------------------------ sessions and clear


def test_sessions_are_listed_with_their_readers_and_events(capsys: Capture, store: Path) -> None:
    fill(store, {"new": 1, "old": 9})
    with Session("/w", session_id="new", store=store) as session:
        session.fork("child").observe("cat f", TEXT)
    assert names(capsys, "--store", str(store)) == ["old", "new"]
    assert main(["sessions", "--store", str(store)]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["last", "event", "readers", "events", "session"]
    assert first.split()[2:] == ["1", "2", "old"]
    assert second.split()[2:] == ["2", "3", "new"]


def test_named_sessions_are_taken_out_and_no_others(capsys: Capture, store: Path) -> None:
    fill(store, {"a": 3, "b": 2, "c": 1})
    assert main(["clear", "a", "--session", "c", "--store", str(store)]) == 0
    assert "deleted 2 sessions" in capsys.readouterr().out
    assert names(capsys, "--store", str(store)) == ["b"]


def test_old_sessions_are_taken_out(capsys: Capture, store: Path) -> None:
    fill(store, {"a": 40, "b": 8, "c": 1})
    assert main(["clear", "--older-than", "1w", "--dry-run", "--store", str(store)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[:2] == ["would delete a", "would delete b"]
    assert names(capsys, "--store", str(store)) == ["a", "b", "c"]
    assert main(["clear", "--older-than", "1w", "--store", str(store)]) == 0
    capsys.readouterr()
    assert names(capsys, "--store", str(store)) == ["c"]


def test_all_are_taken_out_and_nothing_of_them_is_on_the_disk(capsys: Capture, store: Path) -> None:
    fill(store, {"a": 3, "b": 2})
    before = store.stat().st_size
    assert main(["clear", "--all", "--yes", "--store", str(store)]) == 0
    capsys.readouterr()
    assert names(capsys, "--store", str(store)) == []
    assert store.stat().st_size < before
    on_disk = b"".join(file.read_bytes() for file in store.parent.glob("log.db*"))
    assert text(of="a").splitlines()[3].encode() not in on_disk


@pytest.mark.parametrize("words", [(), ("--all",), ("--yes",)], ids=" ".join)
@pytest.mark.parametrize("stdin", [b"", b"y\n"], ids=["no stdin", "a pipe that says yes"])
def test_where_nobody_can_be_asked_all_are_deleted_only_if_the_options_say_so(
    capsys: Capture, store: Path, run: Callable[..., Any], words: tuple[str, ...], stdin: bytes
) -> None:
    fill(store, {"a": 3, "b": 2})
    done = run("clear", *words, "--store", str(store), stdin=stdin)
    said = b"readcache: nobody can be asked here: give the IDs of sessions, --older-than WHEN, or --all --yes\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", said)
    assert names(capsys, "--store", str(store)) == ["a", "b"]
    assert run("clear", *words, "--dry-run", "--store", str(store)).returncode == 0
    assert names(capsys, "--store", str(store)) == ["a", "b"]
    assert run("clear", "--all", "--yes", "--store", str(store)).returncode == 0
    assert names(capsys, "--store", str(store)) == []


@pytest.mark.parametrize("words", [(), ("--all",)], ids=" ".join)
@pytest.mark.parametrize(
    ("answer", "status"), [(b"y\n", 0), (b"YES\n", 0), (b"n\n", 1), (b"\n", 1), (b"\x04", 1)], ids=repr
)
def test_on_a_terminal_clear_asks_and_anything_but_yes_deletes_nothing(
    capsys: Capture, store: Path, start: Callable[..., Any], words: tuple[str, ...], answer: bytes, status: int
) -> None:
    fill(store, {"a": 3, "b": 2})
    ours, theirs = pty.openpty()
    with start("clear", *words, "--store", str(store), stdin=theirs) as process:
        os.write(ours, answer)
        out, err = process.communicate()
    os.close(ours)
    os.close(theirs)
    assert (process.returncode, err) == (status, b"")
    said = (
        f"Delete all sessions (2) in {store}? [y/N] {'deleted 2 sessions; ' if status == 0 else 'nothing was deleted'}"
    )
    assert out.decode().startswith(said)
    assert names(capsys, "--store", str(store)) == ([] if status == 0 else ["a", "b"])


def test_all_and_some_is_a_contradiction(capsys: Capture, store: Path) -> None:
    fill(store, {"a": 3, "b": 2})
    for words in (["--all", "--yes", "a"], ["--all", "--yes", "--older-than", "1d"]):
        assert main(["clear", *words, "--store", str(store)]) == 2
        assert "clear takes --all, or sessions and --older-than, not both" in capsys.readouterr().err
    assert names(capsys, "--store", str(store)) == ["a", "b"]


def test_the_session_of_the_environment_is_not_taken_for_the_one_to_clear(capsys: Capture, store: Path) -> None:
    fill(store, {"s": 1, "t": 2})
    assert main(["clear", "t", "--store", str(store)]) == 0
    capsys.readouterr()
    assert names(capsys, "--store", str(store)) == ["s"]


def test_a_session_that_is_not_there_is_an_expected_failure_and_nothing_is_taken_out(
    capsys: Capture, store: Path
) -> None:
    fill(store, {"a": 1})
    assert main(["clear", "a", "b", "--store", str(store)]) == 1
    assert "no session b in" in capsys.readouterr().err
    assert names(capsys, "--store", str(store)) == ["a"]
    assert main(["clear", "--store", "nosuch.db"]) == 1
    assert main(["sessions", "--store", "nosuch.db"]) == 1
    assert main(["clear", "--older-than", "soon", "--store", str(store)]) == 2


def test_an_open_session_counts_on_nothing_that_was_taken_out(store: Path) -> None:
    with Session("/w", session_id="s", store=store) as session:
        child = session.fork("child")
        for reader in (session, child):
            reader.observe("cat f", TEXT, call_id="c1")
            assert reader.observe("cat f", TEXT).outcome is Outcome.UNCHANGED
        assert main(["clear", "--all", "--yes", "--store", str(store)]) == 0
        for reader in (session, child):
            assert reader.observe("head -n 20 f", "".join(TEXT.splitlines(True)[:20])).outcome is Outcome.FULL


# ------------------------------------------------------------ tidying by itself


def test_once_a_day_the_store_that_nobody_named_loses_what_is_old(
    capsys: Capture, tmp_path: Path, run: Callable[..., Any]
) -> None:
    state = tmp_path / "state/readcache"
    fill(state / "readcache.db", {"old": 31, "young": 29})
    assert run("run", "-c", "cat f").returncode == 0
    assert names(capsys) == ["young", "s"]
    fill(state / "readcache.db", {"older": 99})
    assert run("run", "-c", "cat f").returncode == 0
    assert "older" in names(capsys)
    yesterday = time.time() - DAY - 1
    os.utime(state / "tidied", (yesterday, yesterday))
    assert run("run", "-c", "cat f").returncode == 0
    assert names(capsys) == ["young", "s"]


def test_the_store_of_nobody_is_that_also_where_its_path_is_named(
    capsys: Capture, tmp_path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment that shims are given names it."""
    default = tmp_path / "state/readcache/readcache.db"
    fill(default, {"old": 31, "young": 29})
    monkeypatch.setenv("READCACHE_STORE", str(default))
    assert run("run", "-c", "cat f").returncode == 0
    assert names(capsys) == ["young", "s"]
    main(["doctor"])
    assert "for 30 days after a session's last call" in capsys.readouterr().out


@pytest.mark.parametrize("keep", ["2d", "forever", ""])
def test_how_long_is_a_setting(
    capsys: Capture, tmp_path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, keep: str
) -> None:
    monkeypatch.setenv("READCACHE_KEEP", keep)
    fill(tmp_path / "state/readcache/readcache.db", {"old": 31, "young": 29})
    assert run("run", "-c", "cat f").returncode == 0
    assert names(capsys) == {"2d": ["s"], "forever": ["old", "young", "s"], "": ["young", "s"]}[keep]


def test_a_setting_that_means_nothing_takes_nothing_out_and_doctor_tells_of_it(
    capsys: Capture, tmp_path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("READCACHE_KEEP", "a while")
    fill(tmp_path / "state/readcache/readcache.db", {"old": 31})
    assert run("run", "-c", "cat f").returncode == 0
    assert names(capsys) == ["old", "s"]
    main(["doctor"])
    assert "invalid READCACHE_KEEP 'a while' (examples: " in capsys.readouterr().out


def test_a_store_that_somebody_named_is_theirs_to_clear(capsys: Capture, store: Path, run: Callable[..., Any]) -> None:
    fill(store, {"old": 99})
    assert run("run", "--store", str(store), "-c", "cat f").returncode == 0
    assert names(capsys, "--store", str(store)) == ["old", "s"]


def test_a_store_that_is_too_large_loses_the_oldest_sessions(store: Path) -> None:
    fill(store, {f"s{n}": 20 - n for n in range(10)}, lines=400)
    opened = SqliteStore(store)
    most = opened.used_bytes() // 2
    for session in retention.outlived(opened, time.time(), 30 * DAY, keep_bytes=most):
        opened.take_out(session, time.time())
    left = [name for name in retention.last_events(opened.sessions()) if retention.has_content(opened, name)]
    opened.close()
    assert 3 <= len(left) <= 6
    assert left == [f"s{n}" for n in range(10 - len(left), 10)]


def test_tidying_ends_when_its_patience_does(store: Path) -> None:
    fill(store, {"a": 40, "b": 40})
    opened = SqliteStore(store)
    assert not retention.tidy(opened, time.time(), 30 * DAY, patience=-1)
    assert retention.tidy(opened, time.time(), 30 * DAY, patience=10)
    opened.close()


def test_where_there_can_be_no_state_directory_nothing_is_tidied_and_nothing_raised(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "f/state"))
    (tmp_path / "f").write_text("")
    from readcache.process.settings import read_settings

    tidy.tidy_once_a_day(read_settings({}))
    assert (tmp_path / "f").read_text() == ""


# ------------------------------------------------------------ after an upgrade

TOKEN = "ghp_" + "a1B2c3D4e5" * 4


def old_store(tmp_path: Path, lines: int) -> Path:
    """The default store, as a version without rules for secrets left it."""
    path = tmp_path / "state/readcache/readcache.db"
    with Session("/w", session_id="s", store=path, policy=Policy(protected=())) as session:
        session.observe("cat a", text(of="a") * lines + f"token {TOKEN}\n", call_id="c1")
        session.observe("cat b", text(of="b"), call_id="c2")
    return path


def stored(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir() if file.name.startswith(path.name))


@pytest.mark.parametrize("keep", ["", "forever"])
def test_the_first_command_after_an_upgrade_removes_secrets_once(
    tmp_path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, keep: str
) -> None:
    monkeypatch.setenv("READCACHE_KEEP", keep)
    path = old_store(tmp_path, 1)
    assert TOKEN.encode() in stored(path)
    assert run("run", "-c", "cat f").returncode == 0
    assert TOKEN.encode() not in stored(path)
    assert (path.parent / f"scrubbed-{RULES}").stat().st_mode & 0o077 == 0
    (path.parent / "tidied").unlink()
    old_store(tmp_path, 1)  # by an older version that still runs: that is its owner's to scrub
    assert run("run", "-c", "cat f").returncode == 0
    assert TOKEN.encode() in stored(path)
    assert main(["doctor", "--scrub"]) == 0
    assert TOKEN.encode() not in stored(path)


def test_a_large_store_is_searched_in_the_background(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = old_store(tmp_path, 1 + tidy.SCRUBBED_AT_ONCE // len(text(of="a")))
    assert run("run", "-c", "cat f").returncode == 0
    wait_until((path.parent / f"scrubbed-{RULES}").exists, "the search of the store")
    assert TOKEN.encode() not in stored(path)


def test_a_store_that_somebody_named_is_theirs_to_scrub(store: Path, run: Callable[..., Any], tmp_path: Path) -> None:
    old_store(tmp_path, 1).rename(store)
    assert run("run", "--store", str(store), "-c", "cat f").returncode == 0
    assert TOKEN.encode() in stored(store)
    assert main(["doctor", "--scrub", "--store", str(store)]) == 0
    assert TOKEN.encode() not in stored(store)


def test_a_command_after_forget_shows_the_lines_again(run: Callable[..., Any], capsys: Capture) -> None:
    whole = run("run", "--call-id", "c1", "-c", "cat f").stdout
    assert len(run("run", "-c", "head -n 200 f").stdout) < 200
    assert main(["forget", "c1"]) == 0
    assert "removed the text of call c1 of session s" in capsys.readouterr().out
    assert run("run", "-c", "head -n 100 f").stdout == b"".join(whole.splitlines(True)[:100])
