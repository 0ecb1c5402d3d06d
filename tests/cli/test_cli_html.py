"""`gain --html` and `replay --html`: the same as the tables, as a page."""

from __future__ import annotations

import re
import stat
import time
from pathlib import Path

import pytest

from readcache import Session
from readcache.cli.main import main
from readcache.report.net import ENOUGH_CALLS
from tests.replay.loaded import DATA
from tests.report.parsed import Node, parse

Capture = pytest.CaptureFixture[str]


def page_at(path: Path) -> Node:
    return parse(path.read_text(encoding="utf-8"))


@pytest.fixture
def store(work: Path) -> str:
    path = str(work / "store.db")
    with Session(work, session_id="one", store=path, clock=time.time, host="codex") as session:
        session.run("cat f", call_id="c1")
        session.run("head -200 f", call_id="c2")
    return path


def test_gain_writes_a_page_that_only_this_user_may_read(work: Path, store: str, capfd: Capture) -> None:
    for _ in range(2):  # the second over the first
        assert main(["gain", "--store", store, "--html", "out.html"]) == 0
    page = page_at(work / "out.html")
    assert [h.text for h in page.all("h2")] == [
        *("Totals", "Omitted by day", "Each session", "By host", "By tool", "By reason")
    ]
    assert stat.S_IMODE((work / "out.html").stat().st_mode) == 0o600
    assert capfd.readouterr().out.startswith("out.html: ")
    assert main(["report", "one", "--store", store, "-o", "out.html"]) == 0  # a page is a page


def test_the_options_of_gain_count_for_its_page(store: str, capsys: Capture) -> None:
    with Session(".", session_id="long", store=store, clock=time.time, host="codex") as session:
        for _ in range(ENOUGH_CALLS):
            session.observe("cat f", "a line of a file that is long enough for a marker\n" * 20)
    assert main(["gain", "--store", store, "--html", "-", "--by", "host", "--since", "7d", "--price", "15"]) == 0
    page = parse(capsys.readouterr().out)
    assert [h.text for h in page.all("h2")] == ["Totals", "By host"]
    said = page.all("p", "verdict")[0].text
    ((net, dollars),) = re.findall(r" is ([\d,]+) input tokens at full price, .*, \$([\d.]+)\. ", said)
    assert float(dollars) == pytest.approx(int(net.replace(",", "")) * 15 / 1e6, abs=0.006)
    assert main(["gain", "--store", store, "--html", "-", "--session", "one", "--until", "2020-01-01"]) == 1


def test_replay_writes_a_page_of_the_policies_that_were_asked_for(work: Path, capsys: Capture) -> None:
    words = ["replay", str(DATA / "codex.jsonl"), "--policy", "default", "--policy", "max", "--conversation", "mask:5"]
    assert main([*words, "--html", "out.html"]) == 0
    page = page_at(work / "out.html")
    titles = [h.text for h in page.all("h2")]
    assert titles == [
        "What to switch on",
        "Policies side by side",
        "Where your turns go",
        "Ways of keeping a conversation",
        "Saved, by tool",
    ]
    assert [th.text for th in page.all("table")[0].all("tr")[0].all("th")] == ["saved", "default", "max"]
    assert capsys.readouterr().out.startswith("out.html: ")


@pytest.mark.parametrize("command", ["gain", "replay"])
def test_a_file_that_is_no_page_of_ours_is_left_alone(work: Path, store: str, capsys: Capture, command: str) -> None:
    (work / "theirs.html").write_text("<!doctype html>\n<p>mine")
    words = ["--store", store] if command == "gain" else [str(DATA / "codex.jsonl")]
    assert main([command, *words, "--html", "theirs.html"]) == 2
    assert "theirs.html exists and is not a page of readcache" in capsys.readouterr().err
    assert main([command, *words, "--html", "out.html", "--json"]) == 2
