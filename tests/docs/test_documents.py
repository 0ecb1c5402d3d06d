"""The documents say what the code does: their blocks, links and examples are checked by running."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from readcache import Reason, Session
from readcache.shell.parse import parse_command
from tests.docs.generate import BLOCKS, DOCUMENTS, block_names, fill
from tests.docs.tables import TOP
from tests.docs.transcript import write_project

ALL = (*DOCUMENTS, "CHANGELOG.md", "shims/README.md")
REGENERATE = "run `python -m tests.docs.generate --write`"


def text_of(name: str) -> str:
    return (TOP / name).read_text(encoding="utf-8")


def fenced(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_holds_what_running_the_code_gives(name: str) -> None:
    text = text_of(name)
    assert fill(text) == text, REGENERATE


def test_every_block_has_its_place_in_one_document() -> None:
    assert sorted(name for document in DOCUMENTS for name in block_names(text_of(document))) == sorted(BLOCKS)


def test_a_block_that_was_edited_by_hand_is_noticed() -> None:
    text = text_of("README.md")
    edited = text.replace("| `min_chars` | `", "| `min_chars` | `1", 1)
    assert edited != text
    assert fill(edited) == text


@pytest.mark.parametrize("name", ALL)
def test_every_relative_link_leads_to_a_file(name: str) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text_of(name))
    missing = [target for target in targets if not (TOP / name).parent.joinpath(target).exists()]
    assert missing == []


def test_every_link_into_the_readme_names_a_heading_of_it() -> None:
    text = text_of("README.md")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors


def test_the_python_examples_run_and_print_what_is_said_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    blocks = fenced(text_of("README.md"), "python")
    names: dict[str, Any] = {"__name__": "example"}
    for block in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block, "README.md", "exec"), names)
        assert out.getvalue().splitlines() == re.findall(r"print\(.*# -> (.*)$", block, re.MULTILINE), block
    assert len(blocks) >= 5


def test_the_one_line_commands_are_bash_and_start_from_a_bare_python() -> None:
    commands = [block.strip() for block in fenced(text_of("README.md"), "sh")]
    assert len(commands) == 2
    for command in commands:
        assert "\n" not in command
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -q ")
        subprocess.run(["bash", "-n", "-c", command], check=True)


def test_the_tour_shows_a_full_read_a_marker_and_the_counters(tmp_path: Path) -> None:
    command = fenced(text_of("README.md"), "sh")[0].strip()
    tour = command.partition(" -q . && ")[2].replace("=.venv/", f"={tmp_path}/")
    tour = tour.replace(".venv/bin/readcache", f"{sys.executable} -m readcache")
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(TOP), "HOME": str(tmp_path)}
    done = subprocess.run(["bash", "-c", tour], cwd=TOP, env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n[FILE_UNCHANGED ") == 1
    assert (TOP / "readcache/paths.py").read_text(encoding="utf-8") in done.stdout
    assert re.search(r"^tokens_saved +[1-9]", done.stdout, re.MULTILINE)


def test_without_bashlex_a_compound_command_is_shown_in_full_and_all_else_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("bashlex", "bashlex.parser"):
        monkeypatch.setitem(sys.modules, module, None)
    assert parse_command("(cat song.txt)") is None
    lines = [f"{number} bottles of beer on the wall\n" for number in range(40)]
    session = Session("/repo")
    session.observe("cat song.txt", "".join(lines))
    assert session.observe("head -n 20 song.txt && pwd", "".join(lines[:20])).reason is Reason.COVERED
    assert session.observe("(tail -n 20 song.txt)", "".join(lines[20:])).reason is Reason.NOT_SEEN
    assert session.observe("(cat song.txt)", "".join(lines)).reason is Reason.IDENTICAL
