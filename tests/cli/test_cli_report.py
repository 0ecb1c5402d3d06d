"""`readcache report`: a page of a session in the store, or of a transcript."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from readcache import Session
from readcache.cli.main import main
from tests.replay.loaded import DATA
from tests.replay.sessions import read, sed, session, write
from tests.report.parsed import parse

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def store(work: Path) -> str:
    """Two sessions, the second one newer and with two readers."""
    path = str(work / "store.db")
    for session_id, at in (("old", 1_000.0), ("new", 2_000.0)):
        with Session(work, session_id=session_id, store=path, clock=lambda at=at: at) as agent:  # type: ignore[misc]
            agent.run("head -200 f", call_id="c1")
            agent.run("cat f", call_id="c2")
    with Session(work, session_id="new", store=path, clock=lambda: 2_060.0) as agent:
        agent.fork("searcher").run("cat f", call_id="d1")
    return path


def fault_rates(path: Path) -> list[str]:
    page = parse(path.read_text(encoding="utf-8"))
    names, values = page.all("dt"), page.all("dd")
    return [value.text for name, value in zip(names, values, strict=True) if name.text.startswith("fault rate")]


def test_a_transcript_has_no_fault_rate_because_it_does_not_react(work: Path, store: str) -> None:
    """The page of a transcript, in which nobody saw a marker, gave the rate at which markers were asked for again."""
    write(work / "s.jsonl", session(sed(1, 100), sed(1, 100), sed(1, 100)))
    assert main(["report", "s.jsonl", "-o", "out.html"]) == 0
    assert fault_rates(work / "out.html") == ["not known: recorded"] * 2
    assert main(["report", "old", "--store", store, "-o", "out.html"]) == 0
    assert fault_rates(work / "out.html") == ["0.0"] * 2


def heading(path: str | Path) -> str:
    return parse(Path(path).read_text(encoding="utf-8")).all("h1")[0].text


@pytest.mark.parametrize(("named", "is_there"), [([], "new"), (["old"], "old"), (["--session", "old"], "old")])
def test_a_session_is_named_or_the_newest(
    work: Path, store: str, named: list[str], is_there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("READCACHE_SESSION")
    assert main(["report", *named, "--store", store, "-o", "out.html"]) == 0
    assert heading(work / "out.html") == f"Session {is_there}"


def test_without_a_name_for_the_page_it_is_in_the_state_directory(
    work: Path, store: str, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("READCACHE_SESSION")
    for _ in range(2):
        assert main(["report", "--store", store]) == 0
    page = work.parent / "state/readcache/report.html"
    assert capfd.readouterr().out.startswith(f"{page}: ")
    assert heading(page) == "Session new"
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_the_page_has_every_reader_or_the_one_that_is_named(work: Path, store: str) -> None:
    assert main(["report", "new", "--store", store, "-o", "out.html"]) == 0
    page = parse((work / "out.html").read_text(encoding="utf-8"))
    assert [h.text for h in page.all("h2")] == ["Totals", "Reader main", "Reader searcher"]
    assert [time.text for time in page.all("span", "at")] == ["0:00", "0:00", "1:00"]
    assert main(["report", "new", "--agent", "searcher", "--store", store, "-o", "out.html"]) == 0
    page = parse((work / "out.html").read_text(encoding="utf-8"))
    assert len(page.all("ol", "calls")[0].all("li")) == 1


def test_a_transcript_is_replayed_and_says_with_which_policy(work: Path) -> None:
    write(work / "s.jsonl", session(sed(1, 100), read(20, 80)))
    assert main(["report", "s.jsonl", "--policy", "delta", "-o", "out.html"]) == 0
    page = parse((work / "out.html").read_text(encoding="utf-8"))
    assert "policy delta" in page.all("p", "about")[0].text
    assert len(page.all("ol", "calls")[0].all("li")) == 2
    assert page.all("a", "jump")


def test_of_several_conversations_the_longest_is_taken_and_another_can_be_named(work: Path, capsys: Capture) -> None:
    write(work / "s.jsonl", session(sed(1, 9), name="short"), session(sed(1, 9), sed(1, 90), name="long"))
    assert main(["report", "s.jsonl", "-o", "out.html"]) == 0
    assert heading("out.html") == "Replay of long"
    assert "long, the longest of 2 conversations in s.jsonl" in capsys.readouterr().err
    assert main(["report", "s.jsonl", "--session", "short", "-o", "out.html"]) == 0
    assert heading("out.html") == "Replay of short"
    assert main(["report", "s.jsonl", "--session", "none", "-o", "out.html"]) == 1
    assert "has no conversation none; it has short, long" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.iterdir() if path.suffix != ".md"))
def test_a_page_can_be_made_of_every_format(name: str) -> None:
    assert main(["report", str(DATA / name), "-o", "out.html"]) == 0
    assert heading("out.html").startswith("Replay of ")


def test_sub_agents_beside_a_transcript_are_readers_of_it(work: Path) -> None:
    (work / "s/subagents").mkdir(parents=True)
    main_lines = (DATA / "claude-code-compaction.jsonl").read_text(encoding="utf-8")
    (work / "s.jsonl").write_text(main_lines, encoding="utf-8")
    found = next(line for line in main_lines.splitlines() if '"sessionId":' in line)
    name = found.partition('"sessionId":')[2].strip().split('"')[1]
    for line in (DATA / "claude-code-sub-agent.jsonl").read_text(encoding="utf-8").splitlines():
        there = line.partition('"sessionId":')[2].strip().split('"')[1:2]
        with open(work / "s/subagents/agent-1.jsonl", "a", encoding="utf-8") as file:
            file.write((line.replace(there[0], name) if there else line) + "\n")
    assert main(["report", "s.jsonl", "-o", "out.html"]) == 0
    assert len(parse((work / "out.html").read_text(encoding="utf-8")).all("ol", "calls")) > 1


def test_only_this_user_may_read_the_page(work: Path, store: str) -> None:
    assert main(["report", "new", "--store", store, "-o", "out.html"]) == 0
    assert stat.S_IMODE(os.stat(work / "out.html").st_mode) == 0o600


def test_a_page_is_written_over_and_nothing_else(work: Path, store: str, capsys: Capture) -> None:
    for _ in range(2):
        assert main(["report", "new", "--store", store, "-o", "out.html"]) == 0
    (work / "theirs.html").write_text("<!doctype html>\n<p>mine")
    assert main(["report", "new", "--store", store, "-o", "theirs.html"]) == 2
    assert "theirs.html exists and is not a page of readcache: give another file" in capsys.readouterr().err
    assert (work / "theirs.html").read_text() == "<!doctype html>\n<p>mine"
    assert main(["report", "new", "--store", store, "-o", str(work)]) == 2
    assert main(["report", "new", "--store", store, "-o", "no/such/out.html"]) == 1
    assert "cannot write no/such/out.html" in capsys.readouterr().err
    assert sorted(path.name for path in work.glob("*.html")) == ["out.html", "theirs.html"]
    assert not list(work.glob(".readcache-*"))


def test_a_link_is_followed_and_stays(work: Path, store: str) -> None:
    (work / "real.html").touch()
    (work / "link.html").symlink_to("real.html")
    assert main(["report", "new", "--store", store, "-o", "link.html"]) == 0
    assert (work / "link.html").is_symlink()
    assert heading(work / "real.html") == "Session new"


def test_stdout_gets_the_page_and_nothing_else(
    work: Path, store: str, run: Callable[..., subprocess.CompletedProcess[bytes]]
) -> None:
    (work / "g").write_text("é\n" * 400, encoding="utf-8")
    with Session(work, session_id="new", store=store) as agent:
        agent.run("cat g")
    done = run("report", "new", "--store", store, "-o", "-", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    page = done.stdout.decode("utf-8")
    assert page.startswith("<!doctype html>")
    assert "é" in page
    assert parse(page).all("h1")[0].text == "Session new"


def test_a_page_of_text_that_is_no_utf_8_can_be_written(work: Path, store: str) -> None:
    with Session(work, session_id="new", store=store) as agent:
        agent.observe("cat g", "\udcff\n" * 400, call_id="g")
    assert main(["report", "new", "--store", store, "-o", "out.html"]) == 0


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        (["no/such.jsonl"], 2, "no/such.jsonl does not exist: give a transcript, or the id of a session"),
        (["nobody"], 1, "no session nobody"),
        (["f"], 1, "neither JSON nor lines of JSON objects"),
        (["new", "--agent", "nobody"], 1, "agent nobody has no events; agents with events: "),
        (["f", "--policy", "none"], 2, "unknown policy 'none'"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_cannot_be_shown_is_an_error_that_says_why(
    store: str, capsys: Capture, words: list[str], status: int, why: str
) -> None:
    assert main(["report", *words, "--store", store, "-o", "out.html"]) == status
    assert why in capsys.readouterr().err


def test_the_page_needs_nothing_that_a_plain_install_has_not() -> None:
    program = (
        "import sys, readcache.report.page.page as p; print(*[m for m in ('bashlex', 'sqlite3') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
