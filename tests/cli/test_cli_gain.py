"""`readcache gain` as a user runs it."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from readcache import Session
from readcache.cli.main import main

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def store(work: Path) -> str:
    """Two sessions, of today and of long ago."""
    path = str(work / "store.db")
    for session_id, at in (("old", 1_000.0), ("new", time.time())):
        with Session(work, session_id=session_id, store=path, clock=lambda at=at: at, host=session_id) as session:  # type: ignore[misc]
            session.run("cat f", call_id="c1")
            session.run("head -200 f", call_id="c2")
    return path


def said(capfd: Capture, *arguments: str, status: int = 0) -> str:
    capfd.readouterr()
    assert main(["gain", *arguments]) == status
    return capfd.readouterr().out


def test_the_table_has_four_stretches_of_time_and_three_groups(capfd: Capture, store: str) -> None:
    out = said(capfd, "--store", store)
    assert out.splitlines()[0].startswith("There are too few calls to say what it is worth. readcache omitted ")
    assert out.splitlines()[1] == "readcache judged 4 of 4 calls in 2 sessions since 1970-01-01."
    assert out.splitlines()[4].split() == ["today", "7", "days", "30", "days", "all"]
    assert [line.split()[1] for line in out.splitlines() if line.startswith("by ")] == ["host", "tool", "reason"]
    assert "omissions checked: 2 of 2" in out
    assert "\x1b" not in out


def test_a_session_has_the_counters_of_its_stats(capfd: Capture, store: str) -> None:
    gain = json.loads(said(capfd, "--store", store, "--session", "new", "--json"))
    assert main(["stats", "--store", store, "--session", "new", "--json"]) == 0
    stats = json.loads(capfd.readouterr().out)
    assert {"session": "new", "agent": "main", **gain["windows"]["all"]["counters"]} == stats
    assert gain["windows"]["today"] == gain["windows"]["all"]


def test_what_bounced_off_a_command_of_run_is_in_both(capfd: Capture) -> None:
    """`run` logs an answer in two steps, which `stats` reads as one."""
    for command in ("cat f", "head -200 f", "cat f"):
        main(["run", "-c", command])
    gain = json.loads(said(capfd, "--json"))
    assert main(["stats", "--json"]) == 0
    stats = json.loads(capfd.readouterr().out)
    assert stats["bounces"] == 1
    assert {"session": "s", "agent": "main", **gain["windows"]["all"]["counters"]} == stats


def test_the_session_of_the_environment_is_not_what_is_asked_for(
    capfd: Capture, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("READCACHE_SESSION", "new")
    assert " in 2 sessions" in said(capfd, "--store", store)


def test_since_until_and_by_choose(capfd: Capture, store: str) -> None:
    assert " 2 of 2 calls in 1 session" in said(capfd, "--store", store, "--since", "7d")
    assert " 2 of 2 calls in 1 session" in said(capfd, "--store", store, "--until", "1970-01-01")
    days = json.loads(said(capfd, "--store", store, "--by", "day", "--json"))["by_day"]
    assert list(days) == ["1970-01-01", time.strftime("%Y-%m-%d")]
    out = said(capfd, "--store", store, "--by", "session")
    assert [line.split()[0] for line in out.partition("by session")[2].splitlines()[1:3]] == ["new", "old"]


@pytest.mark.parametrize(
    "words", [("--by", "week"), ("--price", "much"), ("--price", "-1"), ("--since", "soon"), ("--json", "--short")]
)
def test_what_means_nothing_is_said_in_one_line(capfd: Capture, store: str, words: tuple[str, ...]) -> None:
    assert main(["gain", "--store", store, *words]) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_where_there_is_no_store_it_says_what_to_do_and_a_status_bar_says_no_calls(capfd: Capture, work: Path) -> None:
    assert main(["gain"]) == 1
    assert "readcache init" in capfd.readouterr().err
    assert said(capfd, "--short") == "readcache: no calls yet\n"
    assert not (work.parent / "state").exists()


def test_the_short_line_is_of_today_alone(capfd: Capture, store: str) -> None:
    assert said(capfd, "--store", store, "--short").endswith(", 2 of 2 calls judged today\n")


@pytest.mark.slow
def test_the_short_line_has_the_number_of_the_first_line_for_the_same_days(capfd: Capture, work: Path) -> None:
    """A reader that asks again for each small file: `--short` said that it saved, and the table that it lost."""
    text = "".join(f"line {n} of a small file that is read again and again\n" for n in range(40))
    for session_id, at in (("long ago", 86_400.0 * 400), ("new", time.time())):
        with Session(work, session_id=session_id, store=work / "s.db", clock=lambda at=at: at) as session:  # type: ignore[misc]
            for n in range(70):
                for _ in range(3):
                    session.observe(f"cat small{n}", text.replace("small", f"{n}"), exit_code=0)
    store = ("--store", str(work / "s.db"))
    for days in (("--since", "7d"), ("--since", "1970-01-01"), ("--until", "2000-01-01")):
        short, first = said(capfd, *store, *days, "--short"), said(capfd, *store, *days).splitlines()[0]
        (lost,) = re.findall(r"net -([\d,]+) input tokens at full price, -", short)
        assert first.startswith(f"The net loss is {lost} input tokens at full price, ")
    assert said(capfd, *store, "--short").endswith(", 210 of 210 calls judged today\n")


def test_a_store_that_cannot_be_read_ends_in_one_line(capfd: Capture, work: Path) -> None:
    (work / "broken.db").write_bytes(b"no database at all" * 100)
    assert main(["gain", "--store", "broken.db"]) == 1
    assert "is not a readcache store" in capfd.readouterr().err
    assert said(capfd, "--store", "broken.db", "--short").startswith("readcache: the store cannot be read")


def test_a_clock_that_told_no_time_is_of_a_day_long_ago(capfd: Capture, work: Path) -> None:
    with Session(work, session_id="odd", store=work / "store.db", clock=lambda: 1e300) as session:
        session.run("cat f")
    assert "1 of 1 calls in 1 session since 0001-01-01" in said(capfd, "--store", "store.db")
    assert said(capfd, "--store", "store.db", "--short") == "readcache: no calls yet today\n"
    told = said(capfd, "--store", "store.db", "--until", "1d", status=1)
    assert told.startswith("no calls in that time\nomissions checked: 0 of 0 ")


def test_a_store_that_another_process_is_writing_is_read(capfd: Capture, store: str) -> None:
    other = sqlite3.connect(store, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert "4 of 4 calls" in said(capfd, "--store", store)
    other.execute("ROLLBACK")
    other.close()


def test_an_omission_that_the_log_does_not_prove_is_a_failure(capfd: Capture, store: str) -> None:
    db = sqlite3.connect(store)
    db.execute("UPDATE blobs SET text = replace(text, 'line 7 ', 'line x ')")
    db.commit()
    db.close()
    assert "NOT PROVEN: session new, main, call c2: " in said(capfd, "--store", store, status=1)
    assert main(["gain", "--store", store, "--json"]) == 1
    assert "session new, main, call c2: " in json.loads(capfd.readouterr().out)["checked"]["faults"][0]


@pytest.mark.parametrize(("charset", "block"), [("ascii", "#"), ("utf-8", "█")])
def test_bars_are_drawn_with_what_the_terminal_has(run: Run, store: str, charset: str, block: str) -> None:
    done = run("gain", "--store", store, env={**os.environ, "PYTHONIOENCODING": charset})
    assert done.returncode == 0, done.stderr
    assert block * 16 in done.stdout.decode(charset)


def test_run_names_itself_unless_the_harness_does(run: Run, capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    run("run", "-c", "cat f")
    monkeypatch.setenv("READCACHE_HOST", "my-agent")
    run("run", "-c", "cat f")
    assert list(json.loads(said(capfd, "--json"))["by_host"]) == ["my-agent", "run"]


def test_a_model_has_its_own_prices_and_money(capfd: Capture, store: str) -> None:
    usual, model = (
        json.loads(said(capfd, "--store", store, "--json", *more))["windows"]["all"]
        for more in ((), ("--model", "anthropic/claude-opus-5.5"))
    )
    longer = 3 / 2  # a token of an unknown model has 3 characters, one of this model 2
    assert 0 < model["priced_net"] <= longer * usual["priced_net"] * 1.001
    assert model["money"] == pytest.approx(model["priced_net"] * 4e-6, abs=1e-6)
    own = json.loads(said(capfd, "--store", store, "--json", "--model", "claude-opus-5-5", "--price", "3"))
    assert own["windows"]["all"]["money"] == pytest.approx(model["priced_net"] * 3e-6, abs=1e-6)


def test_a_model_without_prices_is_one_line(capfd: Capture, store: str) -> None:
    assert main(["gain", "--store", store, "--model", "claude-opus-5-55"]) == 2
    told = capfd.readouterr().err
    assert told.startswith("readcache: --model 'claude-opus-5-55' has no prices (did you mean claude-opus-5-5?)")
    assert told.count("\n") == 1
