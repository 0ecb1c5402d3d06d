"""Tables and progress: drawn by rich on a terminal, plain text without it, whole lines in a pipe."""

from __future__ import annotations

import io
import sys

import pytest

from readcache.cli.output import print_table, progress

PLAIN = "name          count\none\\x1b[31m       1\ntwo [bold]   12,345\n"
HEADING, ROWS = ("name", "count"), [("one\x1b[31m", 1), ("two [bold]", 12_345)]


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def terminal_for(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Stdout and stderr, as a terminal that is 60 columns wide."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    return stream


@pytest.fixture
def no_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rich.console", "rich.progress", "rich.table"):
        monkeypatch.setitem(sys.modules, name, None)


def test_on_a_terminal_rich_draws_the_table_and_obeys_nothing_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_for(monkeypatch)
    print_table(ROWS, 60, heading=HEADING)
    heading, one, two = terminal.getvalue().splitlines()
    assert "\x1b[1m" in heading, "bold"
    assert (one.split(), two.split()) == (["one\\x1b[31m", "1"], ["two", "[bold]", "12,345"])


@pytest.mark.usefixtures("no_rich")
def test_without_rich_a_table_is_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_for(monkeypatch)
    print_table(ROWS, 60, heading=HEADING)
    assert terminal.getvalue() == PLAIN


def test_in_a_pipe_a_table_is_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(ROWS, 60, heading=HEADING)
    assert capsys.readouterr().out == PLAIN


def test_a_table_without_rows_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([], 60)
    assert capsys.readouterr().out == ""


def test_rich_draws_how_much_is_done_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_for(monkeypatch)
    with progress(2_000) as advance:
        advance(1_000)
        assert "1.0/2.0 kB" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")


@pytest.mark.usefixtures("no_rich")
def test_without_rich_it_is_told_in_percent(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_for(monkeypatch)
    with progress(2_000) as advance:
        advance(500)
        advance(500)
    assert terminal.getvalue() == "\r 25 %\r 50 %\r     \r"


def test_into_a_file_no_progress_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(0) as advance:
        advance(1)
    assert capsys.readouterr() == ("", "")
