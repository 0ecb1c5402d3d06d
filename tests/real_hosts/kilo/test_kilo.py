"""Kilo, a fork of opencode, with the same plugin: the suite, and that nothing is lost, with the real program."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from readcache.testing.conformance import Conformance, make_project
from readcache.testing.hosts import Bash, Compact
from readcache.testing.requests import markers
from tests.real_hosts.fired import check_fire
from tests.real_hosts.measured import Run, compare
from tests.real_hosts.measured_script import CALLS, STEPS
from tests.real_hosts.opencode.host import Conversation, OpencodeHost
from tests.real_hosts.opencode.scripted import Model, install, opencode
from tests.real_hosts.taken_away import CAT, HEAD, LOSSES, Environment

HOST = OpencodeHost("kilo")
SECTION = "## Files restored after compaction"


@pytest.fixture(scope="module", autouse=True)
def end() -> Iterator[None]:
    """What was started for the tests ends with them."""
    yield
    HOST.close()


class TestKilo(Conformance):
    host = HOST


@pytest.mark.parametrize(("what", "when"), LOSSES)
def test_what_is_taken_away_costs_the_agent_nothing(what: str, when: str, tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "project"
    make_project(root)
    own = Environment(tmp_path, home)
    install(home, own.program, is_user=True, host="kilo")
    with opencode(home, Model(), root, "kilo") as host:
        own.check(what, when, Conversation(host).run_steps, (root / "shop.py").read_text())


def test_what_a_compaction_took_away_is_put_back_in_each_request(tmp_path: Path) -> None:
    make_project(tmp_path / "project")
    steps = ((CAT,), (Bash("ls"),), (Bash("pwd"),), Compact(), (HEAD,), (Bash("ls"),))
    seen = HOST.converse(tmp_path / "project", steps, on=True)
    found = [[text for text in one.texts if SECTION in text] for one in seen[3:]]
    assert found[0] == found[1] == found[2], "the same bytes in each request"
    assert len(found[0]) == 1
    assert markers(seen[4].results[0])


def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    def run_steps(root: Path, on: bool) -> Run:
        make_project(root)
        talk = Conversation(HOST.opencode(on=on).at(root))
        talk.run_steps([(Bash("true"),)])
        began, before = time.monotonic(), talk.result_chars
        talk.run_steps(STEPS)
        return Run(talk.result_chars - before, time.monotonic() - began, CALLS)

    compare("kilo", {"@kilocode/cli": "7.7.7"}, run_steps, tmp_path)


def test_doctor_proves_with_a_scripted_model_that_the_models_copy_changed() -> None:
    check_fire("kilo")
