"""Failures of tools like this one: the model is sent other things than it seems."""

from __future__ import annotations

from typing import Any

import pytest

from readcache import Outcome, Policy, Session
from readcache.serve.mcp.readers import CONVERSATION, READER, McpReaders
from tests.helpers.chats import SHAPES_WITH_IDS, message_list
from tests.helpers.files import TEXT, text
from tests.helpers.replies import sources


def conversation(session: Session, *calls: tuple[str, str]) -> list[tuple[str, str, str]]:
    """(call id, command, reply) of commands that each print a file."""
    return [
        (name, f"cat {path}", session.observe(f"cat {path}", text(of=path), call_id=name).text) for name, path in calls
    ]


@pytest.mark.parametrize("shape", SHAPES_WITH_IDS)
def test_a_marker_names_its_source_by_what_stands_in_the_list_and_not_by_a_number(session: Session, shape: str) -> None:
    """Message indexes and handles change when the harness takes older messages out."""
    turns = conversation(session, ("c1", "old"), ("c2", "f"), ("c3", "f"))
    whole, shorter = message_list(shape, turns), message_list(shape, turns[1:])
    session.sync(whole)
    assert session.mend(shorter) is shorter
    (marker,) = session.markers_in(turns[2][2])
    assert '"cat f"' in marker
    assert "cat f" in str(shorter[1]), "the command that it names stands in the list"


def test_readers_of_one_mcp_connection_that_do_not_say_who_they_are_are_shown_every_byte() -> None:
    """Sub-agents of one MCP connection were taken for one reader."""
    readers = McpReaders("/w", policy=Policy())
    for _ in range(3):
        with readers.call({}) as caller:
            assert caller.session.observe("cat f", TEXT, call_id=caller.call_id).text == TEXT
    named: list[dict[str, Any]] = [{CONVERSATION: "s", READER: name} for name in ("main", "helper", "main")]
    outcomes = []
    for meta in named:
        with readers.call(meta) as caller:
            outcomes.append(caller.session.observe("cat f", TEXT, call_id=caller.call_id, batch=caller.call_id).outcome)
    assert outcomes == [Outcome.FULL, Outcome.FULL, Outcome.UNCHANGED]
    readers.close()


def test_a_compaction_is_of_one_reader_and_of_the_forks_that_begin_after_it() -> None:
    """A compaction forgot the parent's view and not that of its children."""
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="c1")
    before = session.fork("before", inherit=True)
    session.compacted()
    after = session.fork("after", inherit=True)
    assert after.observe("cat f", TEXT).outcome is Outcome.FULL
    assert session.observe("cat f", TEXT).outcome is Outcome.FULL
    assert sources(before.observe("cat f", TEXT)) == {"c1"}, "its copy of the messages still has the result"
    before.compacted()
    assert before.observe("head -n 60 f", TEXT).outcome is Outcome.FULL


@pytest.mark.parametrize("shape", SHAPES_WITH_IDS)
def test_a_fork_holds_of_its_parents_messages_what_its_own_list_holds(shape: str) -> None:
    session = Session("/w")
    turns = conversation(session, ("c1", "f"), ("c2", "g"))
    child = session.fork("helper", inherit=True)
    child.sync(message_list(shape, turns[1:]))  # its host cut the history that it handed over
    assert child.observe("cat f", text(of="f"), call_id="k1").outcome is Outcome.FULL
    assert sources(child.observe("cat g", text(of="g"), call_id="k2")) == {"c2"}
