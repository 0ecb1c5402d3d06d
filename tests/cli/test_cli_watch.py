"""`readcache watch`: the live view of a session."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from readcache import Session
from readcache.cli.main import main
from readcache.cli.show import watched
from readcache.core.model.cursor import Cursor
from readcache.process.state import default_store

Capture = pytest.CaptureFixture[str]


def drawn(work: Path, height: int) -> list[str]:
    with Session(work, session_id="s\x1b[31m") as session:
        for number, command in enumerate(("cat f", "head -200 f", "cat f  # [bold]mine")):
            session.run(command, call_id=f"c{number}")
        cursor = Cursor(session.events(), "main")
    cursor.end()
    out = io.StringIO()
    Console(file=out, width=110).print(watched(cursor, session.session_id, height))
    return out.getvalue().splitlines()


def test_it_shows_what_was_left_out_and_how_much_is_in_view(work: Path) -> None:
    lines = drawn(work, 20)
    assert "3 calls, " in lines[0]
    assert "tokens of results in view" in lines[0]
    assert "unchanged/covered" in lines[3]
    assert "saved" in lines[3]
    assert "# [bold]mine" in lines[4]
    assert "\x1b" not in "".join(lines)


def test_it_shows_no_more_than_there_is_room_for(work: Path) -> None:
    assert len(drawn(work, 5)) == 4
    assert "[bold]mine" in drawn(work, 5)[2]


@pytest.mark.parametrize("words", [[], ["--session", "s"]])
def test_it_follows_the_store_until_it_is_interrupted(
    capfd: Capture, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    looks = iter(range(3))

    def wait(_: float) -> None:
        if next(looks, None) is None:
            raise KeyboardInterrupt
        with Session(session_id="s", store=default_store()) as session:  # what goes on meanwhile
            session.observe("cat g", "a line\n" * 99)

    monkeypatch.setattr(time, "sleep", wait)
    assert main(["run", "-c", "cat f"]) == 0
    capfd.readouterr()
    assert main(["watch", *words]) == 0
    assert "s, main: 4 calls" in capfd.readouterr().out


def test_a_session_that_is_not_there_is_named_as_such(capfd: Capture) -> None:
    assert main(["watch"]) == 1
    main(["run", "-c", "cat f"])
    capfd.readouterr()
    assert main(["watch", "--session", "misspelt"]) == 1
    assert capfd.readouterr().err == "readcache: no such session or agent was recorded: see `readcache sessions`\n"


def test_without_rich_it_says_what_to_install(capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.live", None)
    assert main(["watch"]) == 1
    assert "pip install 'readcache[watch]'" in capfd.readouterr().err
