"""Gemini CLI with readcache: the suite, and what is peculiar to it."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

from readcache.testing.conformance import Conformance, make_project
from readcache.testing.hosts import Bash, Compact, Edit, Read, Step
from readcache.testing.requests import markers
from tests.real_hosts.fired import check_fire
from tests.real_hosts.gemini.scripted import GeminiHost, texts_of
from tests.real_hosts.measured import Run, compare

CAT = Bash("cat shop.py")


class TestGemini(Conformance):
    host = GeminiHost(words=("--on",))


def project(tmp_path: Path) -> Path:
    make_project(tmp_path / "project")
    return tmp_path / "project"


def test_the_command_is_the_users_own_and_the_reply_says_that_it_is_no_error(tmp_path: Path) -> None:
    failing = Bash("cat shop.py; (exit 3)")
    seen = GeminiHost(words=("--on",)).converse(project(tmp_path), [(failing,), (failing,)], on=True)
    reply = (
        r"Not an error: [^\n]*\n<untrusted_context>\nOutput:\n\[UNCHANGED [^\n]*; exit 3; [^\n]*\]\n"
        r"Exit Code: 3\nProcess Group PGID: \d+\n</untrusted_context>"
    )
    assert re.fullmatch(reply, seen[1].results[0])
    assert not [text for text in seen[1].texts[1:] if "readcache" in text or "modified by a hook" in text]


def test_the_frame_that_differs_each_time_is_no_content(tmp_path: Path) -> None:
    listing = Bash("ls -l; for n in 1 2 3 4 5 6 7 8 9; do echo a line of no file that is long enough $n; done")
    seen = GeminiHost(words=("--on",)).converse(project(tmp_path), [(listing,), (listing,)], on=True)
    assert "Process Group PGID" in seen[1].results[0]
    assert markers(seen[1].results[0])


def test_a_failure_of_ours_passes_the_real_output_through_and_is_noted(tmp_path: Path) -> None:
    host = GeminiHost(store=tmp_path, words=("--on",))
    seen = host.converse(project(tmp_path), [(CAT,), (CAT,)], on=True)
    assert "def item_60" in seen[1].results[0]
    assert host.failures


@pytest.mark.parametrize("words", [(), ("--on",)])
def test_where_readcache_is_gone_the_agent_has_every_result(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The CLI takes most exit statuses with a text on stderr for a refusal, and withholds the result."""
    seen = GeminiHost(words=words, lost=True).converse(project(tmp_path), [(CAT, CAT), (Read("shop.py"),)], on=True)
    results = [result for step in seen for result in step.results]
    assert len(results) == 3
    assert all("def item_60" in result and "No such file" not in result for result in results)


@pytest.mark.parametrize("host", [GeminiHost(), GeminiHost(words=("--on",), env={"READCACHE": "off"})])
def test_it_only_advises_and_it_can_be_turned_off(tmp_path: Path, host: GeminiHost) -> None:
    seen = host.converse(project(tmp_path), [(CAT,), (CAT,)], on=True)
    assert "def item_60" in seen[1].results[0]
    assert host.failures == ""


def test_what_a_compression_took_away_is_put_back_in_each_request(tmp_path: Path) -> None:
    steps: list[Step] = [(CAT,), (Bash("ls"),), Compact(), (Bash("pwd"),), (Read("shop.py", 5, 50),)]
    root, host = project(tmp_path), GeminiHost(words=("--on",))
    seen = host.run(root, steps, on=True).seen
    first, *later = [[text for text in one.texts if "## Files restored after" in text] for one in seen[2:]]
    assert len(first) == 1
    assert later == [first, first], "the same bytes in each request"
    assert (root / "shop.py").read_text() in first[0]
    assert not markers(seen[-1].results[0]), "the chat's file does not have the section"
    assert host.failures == ""


def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    steps: list[Step] = [
        (Read("shop.py"),),
        (Bash("sed -n '10,50p' shop.py"),),
        (Bash("grep -n count shop.py | head"),),
        (Edit("shop.py", "number 9 of", "number nine of"),),
        (Read("shop.py"),),
        (Bash("sed -n '1,30p' shop.py"),),
        Compact(),
        (CAT,),
        (Read("shop.py", 20, 60),),
    ]

    def run_steps(directory: Path, on: bool) -> Run:
        root, began = project(directory), time.monotonic()
        model = GeminiHost(words=("--on",)).run(root, steps, on=on)
        seconds = time.monotonic() - began
        sent = [text for body in model.requests if body.get("tools") for text in texts_of(body)[1]]
        return Run(sum(map(len, sent)), seconds, 8)

    version = subprocess.run(["gemini", "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    compare("gemini", {"gemini": version}, run_steps, tmp_path)


def test_doctor_proves_with_a_scripted_model_that_its_copy_changed() -> None:
    check_fire("gemini")
