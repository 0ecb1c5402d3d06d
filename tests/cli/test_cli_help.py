"""What `--help` says, and tables in terminals of any width."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from readcache.cli.main import main
from readcache.cli.parser import _GROUPS, command_parsers, parse_words

Capture = pytest.CaptureFixture[str]
COMMANDS = sorted(command_parsers()[1])


def said(capfd: Capture, *words: str) -> str:
    capfd.readouterr()
    assert main(words) == 0
    return capfd.readouterr().out


def test_every_command_is_in_one_group_of_the_help(capfd: Capture) -> None:
    text = said(capfd, "--help")
    groups = re.findall(r"^(\w[\w ]*):\n((?:  .*\n)+)", text, re.MULTILINE)
    names = [name for _, rows in groups[:4] for name in re.findall(r"^  (\w+)", rows, re.MULTILINE)]
    assert [title for title, _ in groups] == [*_GROUPS, "options", "environment"]
    assert sorted(names) == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_an_example_that_is_understood(capfd: Capture, name: str) -> None:
    (example,) = re.findall(r"^example: readcache (.*)$", said(capfd, "help", name), re.MULTILINE)
    words = shlex.split(re.sub(r" [<>]+\S+", "", example))
    assert parse_words(words).command == name if name != "run" else words[0] == name


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_help_and_tables_fit_the_terminal(capfd: Capture, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    for _ in range(2):
        main(["run", "-c", "cat f # " + "a long command " * 9])
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in (["--help"], ["gain"], ["log"], ["stats"], ["sessions"], ["replay", str(DATA)]):
        lines = said(capfd, *words).splitlines()
        assert max(map(len, lines)) <= max(columns, 80 if words == ["--help"] else 0), words
        assert words == ["sessions"] or max(map(len, lines)) > columns * 0.6, words


@pytest.mark.parametrize("columns", [1, 2, 3, 19])
def test_a_terminal_that_is_too_narrow_is_no_bug(capfd: Capture, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    main(["run", "-c", "cat f # " + "a long command " * 9])
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in (
        ["--help"],
        ["clear", "--help"],
        ["gain"],
        ["log"],
        ["stats"],
        ["sessions"],
        ["replay", str(DATA)],
        [],
    ):
        assert said(capfd, *words), words


DATA = Path(__file__).resolve().parents[1] / "replay/data/codex.jsonl"


def test_a_script_gets_a_line_for_each_event_however_long(capfd: Capture) -> None:
    main(["run", "-c", "cat f # " + "a long command " * 9])
    assert len(said(capfd, "log").splitlines()) == 1
