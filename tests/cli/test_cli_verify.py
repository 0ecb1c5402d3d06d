"""`readcache verify` as somebody runs it who doubts."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from readcache import Session
from readcache.cli.main import main

Capture = pytest.CaptureFixture[str]
DATA = Path(__file__).parents[1] / "replay/data"


@pytest.fixture
def store(work: Path) -> str:
    """Two sessions with an omission each."""
    path = str(work / "store.db")
    for session_id in ("one", "two"):
        with Session(work, session_id=session_id, store=path) as session:
            for command in ("cat f", "head -200 f"):
                session.run(command)
    return path


def said(capfd: Capture, *arguments: str, status: int = 0) -> str:
    capfd.readouterr()
    assert main(["verify", *arguments]) == status
    return "".join(capfd.readouterr())


def test_it_holds_for_a_store_a_session_and_a_transcript(capfd: Capture, store: str) -> None:
    assert said(capfd, store) == said(capfd, "--store", store) == "holds: 2 omissions of 2 readers proven\n"
    assert said(capfd, "two", "--store", store) == "holds: 1 omissions of 1 reader proven\n"
    assert said(capfd, str(DATA), "--policy", "max").startswith("holds: 25 omissions of 13 readers proven")


def test_a_text_that_is_another_in_the_log_breaks_it(capfd: Capture, store: str) -> None:
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("UPDATE blobs SET text = replace(text, 'line', 'LINE')")
    out = said(capfd, store, status=1)
    assert out.count("broken: session one, main, call rc-") == 1
    assert out.endswith("broken: 0 omissions of 2 readers proven\n")


@pytest.mark.parametrize("source", ["three", "nowhere.jsonl"])
def test_a_misspelt_source_is_an_error(capfd: Capture, store: str, source: str) -> None:
    assert "has no session" in said(capfd, source, "--store", store, status=1)
    assert "no store at" in said(capfd, source, "--store", "missing.db", status=1)
