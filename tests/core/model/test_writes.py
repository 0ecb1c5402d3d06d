"""Which files a write concerns, and in which order a command's own writes and reads happened: one rule for all."""

from __future__ import annotations

from pathlib import Path

import pytest

from readcache import Session
from readcache.cli.main import main
from readcache.core.model.claims import WHOLE_TREE, common_prefix, concerns
from readcache.core.model.events import Delivered, Wrote
from tests.helpers.files import text


@pytest.mark.parametrize(
    ("written", "key", "is_concerned"),
    [
        ("/w/a.py", "/w/a.py", True),
        ("/w/a.py", "/w/a.pyc", False),
        ("/w/src", "/w/src/deep/a.py", True),
        ("/w/src", "/w/srcs/a.py", False),
        ("/w/*.py", "/w/a.py", True),
        ("/w/*.py", "/w/a.txt", False),
        ("/w/[ab].py", "/w/c.py", False),
        ("/", "/w/a.py", True),
        (WHOLE_TREE, "/w/a.py", True),
        ("/w/a[1].py", "/w/a[1].py", True),
    ],
)
def test_a_write_concerns_a_file_a_directory_or_what_a_glob_matches(written: str, key: str, is_concerned: bool) -> None:
    assert concerns(written, key) is is_concerned
    if is_concerned and written != WHOLE_TREE:
        assert key.startswith(common_prefix(written))


@pytest.mark.parametrize("command", ["sed -i s/x/y/ a.py", "sed -i s/x/y/ *.py", "rm -r ."])
def test_a_file_that_is_read_and_then_written_in_one_command_is_written_after_it_was_read(command: str) -> None:
    session = Session("/w")
    session.observe(f"cat a.py; {command}", text(), call_id="c1")
    assert [type(record.event) for record in session.events()] == [Delivered, Wrote]
    assert not session.view.covers("/w/a.py", 1, 60)


def test_a_file_that_is_written_first_is_seen_as_it_is_afterwards() -> None:
    session = Session("/w")
    session.observe("sed -i s/x/y/ *.py; cat a.py", text(), call_id="c1")
    assert [type(record.event) for record in session.events()] == [Wrote, Delivered]
    assert session.view.covers("/w/a.py", 1, 60)


def test_a_glob_that_wrote_a_file_makes_it_written_for_the_plan_and_for_explain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "log.db"
    with Session("/w", session_id="s", store=store) as session:
        session.observe("cat a.py", text(), call_id="c1")
        session.observe("sed -i s/x/y/ *.py", "", call_id="c2")
        assert [item.bytes.value for item in session.restore_plan().items] == ["last seen, written since"]
    assert main(["explain", "/w/a.py", "--session", "s", "--store", str(store)]) == 0
    assert "sed -i s/x/y/ *.py" in capsys.readouterr().out.partition("writes seen:")[2]
