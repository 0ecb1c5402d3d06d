"""Sessions of many conversations, from one place."""

from __future__ import annotations

from pathlib import Path

import pytest

from readcache import Outcome, Policy, Reason, Sessions
from tests.helpers.files import TEXT


def test_the_same_conversation_and_reader_have_the_same_session() -> None:
    sessions = Sessions("/w")
    assert sessions.get("a") is sessions.get("a", "main")
    assert sessions.get("a") is not sessions.get("b")
    assert sessions.get("a") is not sessions.get("a", "sub")


def test_what_one_conversation_was_shown_is_no_source_in_another() -> None:
    sessions = Sessions("/w")
    sessions.get("a").observe("cat f", TEXT)
    assert sessions.get("b").observe("cat f", TEXT).text == TEXT
    assert sessions.get("a", "sub").observe("cat f", TEXT).text == TEXT
    assert sessions.get("a").observe("cat f", TEXT).outcome is Outcome.UNCHANGED


def test_a_write_of_one_reader_is_known_to_the_others_of_its_conversation() -> None:
    sessions = Sessions("/w")
    sessions.get("a").observe("cat f", TEXT)
    sessions.get("a", "sub").wrote("f")
    assert sessions.get("a").observe("cat f", TEXT).reason is Reason.WRITTEN


def test_counters_of_all_open_conversations_are_summed() -> None:
    sessions = Sessions("/w")
    assert sessions.stats() == {}
    readers = [sessions.get("a"), sessions.get("a", "sub"), sessions.get("b")]
    replies = [reader.observe("cat f", TEXT) for reader in readers * 2]
    assert sessions.stats()["calls"] == 6
    assert sessions.stats().keys() == readers[0].stats().keys()
    assert sessions.stats()["tokens_saved"] == sum(reply.tokens_saved for reply in replies) > 0
    sessions.close("b")
    assert sessions.stats()["calls"] == 4


def test_the_policy_is_that_of_every_session() -> None:
    policy = Policy(delta=True)
    assert Sessions("/w", policy=policy).get("a").policy is policy


def test_a_closed_conversation_begins_anew_in_memory() -> None:
    sessions = Sessions("/w")
    before = sessions.get("a")
    before.observe("cat f", TEXT)
    sessions.close("a")
    sessions.close("never seen")
    assert sessions.get("a") is not before
    assert sessions.get("a").observe("cat f", TEXT).text == TEXT


def test_a_closed_conversation_goes_on_in_a_durable_store(tmp_path: Path) -> None:
    sessions = Sessions("/w", store=tmp_path / "s.db")
    sessions.get("a").observe("cat f", TEXT)
    sessions.close_all()
    assert sessions.get("a").observe("cat f", TEXT).outcome is Outcome.UNCHANGED
    sessions.close_all()


@pytest.mark.parametrize("inherit", [False, True])
def test_a_sub_agent_begins_empty_or_with_a_copy_of_what_its_parent_saw(inherit: bool) -> None:
    sessions = Sessions("/w")
    sessions.get("a").observe("cat f", TEXT)
    child = sessions.fork("a", "helper", inherit=inherit)
    assert sessions.get("a", "helper") is child
    assert child.observe("cat f", TEXT).outcome is (Outcome.UNCHANGED if inherit else Outcome.FULL)
    grandchild = sessions.fork("a", "its helper", parent="helper", inherit=True)
    assert grandchild.observe("head -n 60 f", TEXT).outcome is Outcome.UNCHANGED


def test_a_sub_agent_is_a_new_reader_under_whatever_name() -> None:
    sessions = Sessions("/w")
    sessions.get("a", "helper").observe("cat f", TEXT)
    children = [sessions.fork("a", "helper") for _ in range(2)]
    assert [child.agent_id for child in children] == ["helper-2", "helper-3"]
    assert sessions.get("a", "helper-3") is children[1]


def test_a_sub_agent_ends_with_its_conversation(tmp_path: Path) -> None:
    sessions = Sessions("/w", store=tmp_path / "s.db")
    child = sessions.fork("a", "helper")
    child.observe("cat f", TEXT)
    sessions.close("a")
    assert sessions.get("a", "helper") is not child
    assert sessions.get("a", "helper").observe("cat f", TEXT).outcome is Outcome.UNCHANGED, "it was closed in order"
    sessions.close_all()


def test_a_fork_of_a_conversation_begins_with_what_that_saw_and_its_source_stays(tmp_path: Path) -> None:
    for store in (None, tmp_path / "s.db"):
        sessions = Sessions("/w", store=store)
        first = sessions.get("a").observe("cat f", TEXT)
        sessions.inherit("fork", "a")
        assert sessions.get("fork").stats() == {}
        found = sessions.get("fork").observe("head -500 f", TEXT)
        assert {name for omitted, _, _ in found.omissions() for name in omitted.sources} == {first.call_id}
        sessions.get("fork").wrote("f")
        assert sessions.get("a").observe("head -500 f", TEXT).outcome is Outcome.UNCHANGED
        assert sessions.get("fork").observe("tail -500 f", TEXT).reason is Reason.WRITTEN


def test_a_conversation_that_made_room_goes_on_from_the_store(tmp_path: Path) -> None:
    sessions = Sessions("/w", store=tmp_path / "s.db", most_readers=3)
    first = sessions.get("a").observe("cat f", TEXT)
    child = sessions.fork("a", "helper")
    child.observe("cat f", TEXT)
    sessions.get("b").observe("cat f", TEXT)
    sessions.get("a").observe("cat g", "a line of g\n" * 40)
    sessions.get("c").observe("cat f", TEXT)
    assert sessions.conversations() == ["a", "c"], "b was unused for longest"
    sessions.get("b")
    assert sessions.conversations() == ["c", "b"], "the readers of a conversation go together"
    assert sessions.stats()["calls"] == 2, "the store has the others"
    again = sessions.get("a")
    replies = [again.observe("cat f", TEXT), again.observe("cat g", "a line of g\n" * 40)]
    assert [reply.outcome for reply in replies] == [Outcome.UNCHANGED, Outcome.FULL]
    assert {name for omitted, _, _ in replies[0].omissions() for name in omitted.sources} == {first.call_id}
    assert again.observe("cat g", "a line of g\n" * 40).outcome is Outcome.UNCHANGED
    sessions.close_all()


def test_a_conversation_in_memory_that_made_room_begins_anew() -> None:
    sessions = Sessions("/w", most_readers=1)
    sessions.get("a").observe("cat f", TEXT)
    sessions.get("b").observe("cat f", TEXT)
    assert sessions.get("a").observe("cat f", TEXT).text == TEXT
    assert sessions.stats()["calls"] == 3


def test_the_readers_of_all_places_share_the_limit(tmp_path: Path) -> None:
    sessions = Sessions("/w", store=tmp_path / "s.db", most_readers=2)
    here, there = (sessions.at(place, f"/{place}", Policy(), place) for place in ("here", "there"))
    assert here.get("a") is not there.get("a")
    assert (there.get("a").root, there.get("a").host) == ("/there", "there")
    assert list((here.lent or {}).values()) == here.readers()[1:]
    assert here.get("b") in sessions.readers()
    assert sessions.conversations() == ["a", "b"]
    sessions.close_all()


def test_a_new_reader_has_seen_nothing_that_another_of_its_name_was_shown(tmp_path: Path) -> None:
    sessions = Sessions("/w", store=tmp_path / "s.db")
    session = sessions.get("a", session_id="s", is_new=True)
    session.observe("cat f", TEXT)
    sessions.close("a")
    again = sessions.get("a", session_id="s", is_new=True)
    assert (again.session_id, again.tag) == ("s", session.tag)
    assert again.observe("cat f", TEXT).text == TEXT
    sessions.close_all()


def test_the_source_of_a_fork_is_not_lent() -> None:
    sessions = Sessions("/w")
    sessions.get("a").observe("cat f", TEXT)
    event = sessions.at(None, "/w", Policy(), "tests")
    event.inherit("fork", "a")
    assert list(event.lent or ()) == [("fork", "main")]
