"""`Session.observe_file`: a file that the harness put into a user message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from readcache import Policy, Session

TEXT = "".join(f"line {n} of a file that the user attached\n" for n in range(1, 61))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "a.py").write_text(TEXT)
    return Session(tmp_path)


def message(text: str = TEXT) -> dict[str, Any]:
    return {"role": "user", "content": f"Please fix it.\n<file path=a.py>\n{text}</file>"}


def test_a_read_of_an_attached_file_names_the_message(session: Session) -> None:
    session.observe_file("a.py", TEXT, message_id="m1")
    reply = session.run("sed -n 10,50p a.py", call_id="c1")
    assert reply.omissions()[0][0].sources == ("m1",)
    assert 'in the section "a.py in a user message"' in reply.text
    assert session.files()[0].on_disk


def test_a_changed_file_is_shown(session: Session, tmp_path: Path) -> None:
    session.observe_file("a.py", TEXT, message_id="m1")
    (tmp_path / "a.py").write_text(TEXT.replace(" of a", " of one"))
    assert session.run("cat a.py", call_id="c1").text == (tmp_path / "a.py").read_text()


def test_an_attached_file_outdates_what_was_shown_before(session: Session, tmp_path: Path) -> None:
    session.run("cat a.py", call_id="c1")
    newer = TEXT.replace("line 7 ", "line x ")
    session.observe_file("a.py", newer, message_id="m1")
    (tmp_path / "a.py").write_text(newer)
    assert session.run("cat a.py", call_id="c2").omissions()[0][0].sources == ("m1",)
    assert session.files()[0].call_id == "m1"


def test_the_message_list_decides_whether_it_is_visible(session: Session) -> None:
    session.observe_file("a.py", TEXT, message_id="m1")
    session.sync([message()])
    assert session.run("cat a.py", call_id="c1").omissions()
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    answered: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "…"},
    ]
    session.sync([{"role": "user", "content": "Please fix it."}, *answered])
    assert session.run("cat a.py", call_id="c2").text == TEXT


@pytest.mark.parametrize(("keep", "is_visible"), [(["m1"], True), ([], False)])
def test_a_compaction_keeps_the_message_or_not(session: Session, keep: list[str], is_visible: bool) -> None:
    session.observe_file("a.py", TEXT, message_id="m1")
    session.compacted(keep=keep)
    assert bool(session.run("cat a.py", call_id="c1").omissions()) is is_visible


def test_protected_files_and_secrets_are_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "link.txt").symlink_to(tmp_path / ".env")
    with Session(tmp_path, local=True, policy=Policy()) as session:
        session.observe_file(".env", TEXT, message_id="m1")
        session.observe_file("link.txt", TEXT, message_id="m2")
        session.observe_file("b.py", TEXT + "key = 'AKIA" + "Q3RT" * 4 + "'\n", message_id="m3")
        session.observe_file("empty.py", "", message_id="m4")
        assert session.files() == []
        assert session.events() == []
