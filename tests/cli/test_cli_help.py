"""What `--help` says, what a shell completes, and tables in terminals of any width."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from readcache.cli.main import main
from readcache.cli.parser import _GROUPS, command_parsers, parse_words
from readcache.hosts import MODULES

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


def completed(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words after `readcache`."""
    lines = [
        f"source {shlex.quote(str(script))}",
        f"COMP_WORDS=({shlex.join(['readcache', *words])}) COMP_CWORD={len(words)}",
        '_shtab_readcache; printf "%s\\n" "${COMPREPLY[@]}"',
    ]
    done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_bash_completes_commands_options_hosts_and_values(capfd: Capture, work: Path) -> None:
    script = work / "completion"
    script.write_text(said(capfd, "completion", "bash"))
    assert completed(script, "rep") == ["replay", "report"]
    assert completed(script, "init", "") == [*MODULES]
    assert completed(script, "gain", "--by", "se") == ["session"]
    assert completed(script, "replay", "--policy", "d") == ["default", "delta"]
    assert "--older-than" in completed(script, "clear", "--o")


@pytest.mark.parametrize(("shell", "check"), [("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])])
def test_other_shells_have_a_script_too(capfd: Capture, work: Path, shell: str, check: list[str]) -> None:
    text = said(capfd, "completion", shell)
    assert all(name in text for name in (*MODULES, *COMMANDS))
    if shutil.which(shell):
        (work / "script").write_text(text)
        assert subprocess.run([*check, "script"], capture_output=True).returncode == 0
