"""The documents say what the code does: their blocks, links and examples are checked by running."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from readcache import Reason, Session
from readcache.cli.demo import COMMANDS, write_sample
from readcache.cli.main import main
from readcache.cli.options import VARIABLES, read_run
from readcache.cli.parser import command_parsers, parse_words
from tests.docs import rivals
from tests.docs.flow import ALTERNATIVE, DIAGRAM
from tests.docs.generate import BLOCKS, DOCUMENTS, PICTURES, block_names, fill
from tests.docs.picture import PICTURE
from tests.docs.tables import TOP, field_table

PAGES = sorted(str(path.relative_to(TOP)) for top in ("docs", "readcache") for path in (TOP / top).rglob("*.md"))
TOP_PAGES = tuple(f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "AGENTS", "SECURITY"))
ALL = (*TOP_PAGES, "tests/benchmarks/ab/README.md", *PAGES)
NOT_RUN = ("docs/extending.md", "docs/protocol.md")  # a package, and servers
REGENERATE = "run `python -m tests.docs.generate --write`"


def text_of(name: str) -> str:
    return (TOP / name).read_text(encoding="utf-8")


def fenced(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


SLOWLY_MADE = "tests/benchmarks/ab/README.md"  # by a dry run of the whole kit


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == SLOWLY_MADE else name for name in DOCUMENTS]
)
def test_a_document_holds_what_running_the_code_gives(name: str) -> None:
    text = text_of(name)
    assert fill(text) == text, REGENERATE


def test_every_block_has_its_place_in_one_document() -> None:
    assert sorted(name for document in DOCUMENTS for name in block_names(text_of(document))) == sorted(BLOCKS)


SVG = "{http://www.w3.org/2000/svg}"


def drawn_texts(path: Path) -> list[str]:
    """Return the words that a picture shows."""
    return ["".join(text.itertext()) for text in ElementTree.parse(path).getroot().iter(f"{SVG}text")]


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_what_the_code_draws_and_loads_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == PICTURES[path](), REGENERATE
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\((?!#)|<script", text)
    title = ElementTree.fromstring(text).find(f"{SVG}title")
    assert title is not None
    assert title.text


def test_the_picture_of_the_readme_has_a_marker() -> None:
    assert [text for text in drawn_texts(PICTURE) if text.startswith("[UNCHANGED ")]


def test_the_diagram_names_its_parts_and_the_page_says_what_it_shows() -> None:
    assert set(drawn_texts(DIAGRAM)) >= {"agent", "tool", "readcache", "model", "log"}
    assert f"![{ALTERNATIVE}]({DIAGRAM.name})" in " ".join(text_of("docs/how-it-works.md").split())


def test_the_readme_is_short() -> None:
    assert len(text_of("README.md").splitlines()) <= 150


def test_a_block_that_was_edited_by_hand_is_noticed() -> None:
    text = text_of("README.md")
    edited = text.replace("$ cat shop.py", "$ cat  shop.py", 1)
    assert edited != text
    assert fill(edited) == text


def test_the_figures_of_one_table_are_of_the_same_recordings() -> None:
    replayed, contest = rivals.replayed(), rivals.measured()[-1]
    assert replayed["sha256"] == contest["sha256"]
    assert [replayed[name] for name in ("sessions", "calls", "characters")] == [
        contest[name] for name in ("sessions", "calls", "characters")
    ]


@pytest.mark.parametrize("name", ALL)
def test_every_relative_link_leads_to_a_file(name: str) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text_of(name))
    missing = [target for target in targets if not (TOP / name).parent.joinpath(target).exists()]
    assert missing == []


@pytest.mark.parametrize("name", ALL)
def test_a_link_to_a_module_says_its_name(name: str) -> None:
    links = re.findall(r"\[([a-z_/]+)\]\([^)#\s]*readcache/(?:[a-z_]+/)*?([a-z_]+/)?([a-z_]+)\.py\)", text_of(name))
    # `process` may lead to process/plan.py: a page also names folders
    assert [link for link in links if link[0].rpartition("/")[2] not in (link[2], link[1].rstrip("/"))] == []


def anchors(name: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text_of(name), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_every_test_that_the_page_of_threats_names_exists() -> None:
    files = (path.read_text(encoding="utf-8") for path in (TOP / "tests").rglob("test_*.py"))
    known = {name for text in files for name in re.findall(r"^ *def (test_\w+)\(", text, re.MULTILINE)}
    assert set(re.findall(r"`(test_\w+)`", text_of("docs/threats.md"))) <= known


@pytest.mark.parametrize("name", ALL)
def test_every_link_to_a_heading_names_one(name: str) -> None:
    links = re.findall(r"\]\((?!https?://)([^)#\s]*)#([^)]+)\)", text_of(name))
    pages = ((TOP / name).parent.joinpath(page).resolve() if page else TOP / name for page, _ in links)
    missing = [link for page, link in zip(pages, links, strict=True) if link[1] not in anchors(str(page))]
    assert missing == []


@pytest.mark.parametrize(
    "name", [name for name in DOCUMENTS if name not in NOT_RUN and fenced(text_of(name), "python")]
)
def test_the_python_examples_run_and_print_what_is_said_beside_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sample(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "example"}
    for block in fenced(text_of(name), "python"):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block, name, "exec"), names)
        assert out.getvalue().splitlines() == re.findall(r"print\(.*# -> (.*)$", block, re.MULTILINE), block


COMMAND = re.compile(r"^ {4}(?:uvx --from \. )?readcache (.*)$", re.MULTILINE)
NAMES = {"help", "run", *command_parsers()[1]}


@pytest.mark.parametrize("name", [name for name in ALL if COMMAND.search(text_of(name))])
def test_the_command_line_accepts_each_command_on_a_line_of_its_own(name: str) -> None:
    for line in COMMAND.findall(text_of(name)):
        for command in line.replace("; readcache ", "\n").splitlines():
            words = shlex.split(command, comments=True)
            if words[0] == "run":
                assert read_run(words[1:])
            else:
                parse_words(words)  # raises UsageError for an unknown command or option


@pytest.mark.parametrize("name", [name for name in ALL if name != "CHANGELOG.md"])
def test_a_command_in_a_sentence_is_one_that_exists(name: str) -> None:
    assert set(re.findall(r"`readcache ([a-z]+)\b", text_of(name))) <= NAMES


def test_the_marker_of_the_page_on_how_it_works_is_the_one_in_the_picture() -> None:
    (marker,) = (block.strip() for block in fenced(text_of("docs/how-it-works.md").replace("\n   ", "\n"), "text"))
    assert marker in drawn_texts(PICTURE)


def test_the_one_line_commands_are_bash_and_start_from_a_bare_python() -> None:
    commands = [block.strip() for block in fenced(text_of("README.md"), "sh")]
    assert len(commands) == 2
    for command in commands:
        assert "\n" not in command
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -q ")
        subprocess.run(["bash", "-n", "-c", command], check=True)


def test_the_demo_leaves_nothing_behind_and_tells_no_session_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("READCACHE_SESSION", "mine")
    monkeypatch.setattr(tempfile, "tempdir", None)  # so that TMPDIR is looked at again
    assert main(["demo"]) == 0
    assert capsys.readouterr().out.count("\n$ ") == len(COMMANDS)
    assert list(tmp_path.iterdir()) == []


def test_the_demo_takes_no_option_that_it_would_not_heed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--session", "mine"]) == 2
    assert "--session" in capsys.readouterr().err


def test_the_table_of_a_class_lacks_no_field() -> None:
    @dataclasses.dataclass
    class Undescribed:
        described: int = 1
        """A number."""
        forgotten: int = 2

    with pytest.raises(ValueError, match="no string under it"):
        field_table(Undescribed)


def test_without_bashlex_a_compound_command_is_shown_in_full_and_all_else_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("bashlex", "bashlex.parser"):
        monkeypatch.setitem(sys.modules, module, None)
    lines = [f"{number} bottles of beer on the wall\n" for number in range(40)]
    session = Session("/repo")
    session.observe("cat song.txt", "".join(lines))
    assert session.observe("head -n 20 song.txt && pwd", "".join(lines[:20])).reason is Reason.COVERED
    assert session.observe("(tail -n 20 song.txt)", "".join(lines[20:])).reason is Reason.NOT_SEEN
    assert session.observe("(cat song.txt)", "".join(lines)).reason is Reason.IDENTICAL


# What readcache sets for the processes that it starts.
_INTERNAL = {f"READCACHE_{name}" for name in ("ALONE", "BASH_ENV", "DEPTH", "END", "INSIDE", "MACHINE", "SINK")}


def test_every_variable_that_the_code_reads_is_in_the_reference() -> None:
    files = [path for directory in ("readcache", "shims") for path in (TOP / directory).rglob("*") if path.is_file()]
    texts = [path.read_text(encoding="utf-8", errors="ignore") for path in files if path.suffix != ".pyc"]
    read = {name for text in texts for name in re.findall(r"\bREADCACHE_[A-Z]+(?:_[A-Z]+)*\b", text)}
    named = {
        f"READCACHE_{name}" for name in ("SESSION", "AGENT", "STORE", "POLICY", "PROTECTED", "CLIP", "BATCH")
    }  # by `named`
    assert (read | named | {"READCACHE"}) - _INTERNAL == set(VARIABLES)
