"""`Session.restored_section`: what stands behind a summary in each request, for a host that compacts by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from readcache import Budget, Mode, Policy, Session, UsageError
from tests.helpers.files import text


def test_the_text_is_the_same_at_each_request_and_a_source(session: Session) -> None:
    session.observe("cat f", text(of="f"), call_id="c1")
    first = session.restored_section("The summary.")
    session.observe("cat g", text(of="g"), call_id="c2")
    assert session.restored_section("The summary.") == first
    reply = session.observe("cat f", text(of="f"))
    assert 'in the section "Files restored after compaction"' in reply.text


@pytest.mark.parametrize("in_another_process", [False, True])
def test_a_later_compaction_with_the_same_summary_takes_away_what_came_since(
    tmp_path: Path, in_another_process: bool
) -> None:
    session = Session("/w", session_id="s", store=tmp_path / "log.db")
    session.observe("cat f", text(of="f"), call_id="c1")
    section = session.restored_section("earlier messages were removed", keep=[])
    session.observe("cat g", text(of="g"), call_id="c2")
    session.observe("cat h", text(of="h"), call_id="c3")
    assert session.restored_section("earlier messages were removed", keep=["c2", "c3"]) == section  # a later request
    if in_another_process:
        session.close()
        session = Session("/w", session_id="s", store=tmp_path / "log.db")
    assert session.restored_section("earlier messages were removed", keep=["c3"]) == section
    assert not session.observe("cat g", text(of="g"), call_id="c4").omissions(), "c2 went with the second compaction"
    assert session.observe("cat h", text(of="h"), call_id="c5").omissions()
    assert "in the section" in session.observe("cat f", text(of="f"), call_id="c6").text
    session.close()


def test_a_later_compaction_with_the_same_summary_takes_older_sections_away(session: Session) -> None:
    session.observe("cat f", text(of="f"), call_id="c1")
    done = session.compacted(restored=session.restore_plan())
    session.restored_section("s", keep=[str(done.restored_id)])
    assert session.restored_section("s", keep=[]) == ""
    assert not session.observe("cat f", text(of="f"), call_id="c2").omissions()


def test_a_host_without_ids_cannot_say_what_stays(session: Session) -> None:
    session.observe("cat f", text(of="f"))
    first = session.restored_section("s", keep=[])
    session.observe("cat g", text(of="g"))
    assert session.restored_section("s", keep=[]) == first
    assert session.observe("cat g", text(of="g")).omissions()


def test_what_stays_in_the_list_is_not_put_back_and_stays_visible(session: Session) -> None:
    session.observe("cat f", text(of="f"), call_id="c1")
    session.observe("cat g", text(of="g"), call_id="c2")
    section = session.restored_section("s", keep=["c2"])
    assert "/w/f" in section
    assert "/w/g" not in section
    assert 'above in "cat g"' in session.observe("cat g", text(of="g")).text


def test_another_process_has_the_same_text_and_goes_on_with_it(tmp_path: Path) -> None:
    def open_session() -> Session:
        return Session("/w", session_id="s", store=tmp_path / "log.db")

    with open_session() as session:
        session.observe("cat f", text(of="f"), call_id="c1")
        first = session.restored_section("s")
    with open_session() as session:
        assert session.restored_section("s") == first
        session.sync([{"role": "user", "content": f"A summary.\n\n{first}"}])
        assert session.observe("cat f", text(of="f")).omissions()


def test_another_reader_of_the_conversation_has_the_same_text_too(session: Session) -> None:
    session.observe("cat f", text(of="f"), call_id="c1")
    first = session.restored_section("s")
    other = session.fork("other")
    other.observe("cat g", text(of="g"), call_id="c2")
    assert other.restored_section("s") == first
    assert not other.observe("cat g", text(of="g"), call_id="c3").omissions(), "its own compaction took that away"
    other.sync([{"role": "user", "content": first}])
    assert other.observe("cat f", text(of="f")).omissions()


def test_the_next_compaction_has_a_text_of_its_own_with_what_the_last_one_held(session: Session) -> None:
    session.observe("cat f", text(of="f"), call_id="c1")
    first = session.restored_section("one")
    session.observe("head -n 40 f", text(1, 40, of="f"), call_id="c2")
    session.wrote("f", call_id="c3")
    second = session.restored_section("two")
    assert all(line in second for line in text(of="f").splitlines()), "also the lines that only the first one showed"
    assert session.restored_section("one") == first


@pytest.mark.parametrize("policy", [Policy(restore=Budget(max_tokens=0)), Policy(mode=Mode.ADVISE)])
def test_nothing_is_put_back_where_nothing_may_be(policy: Policy) -> None:
    session = Session("/w", policy=policy)
    session.observe("cat f", text(of="f"), call_id="c1")
    assert session.restored_section("s") == ""
    assert not session.observe("cat f", text(of="f"), call_id="c2").omissions(), "what was compacted is gone"


def test_its_size_is_the_policys() -> None:
    session = Session("/w", policy=Policy(restore=Budget(max_tokens=300)))
    session.observe("cat f", text(1, 200, of="f"), call_id="c1")
    assert 0 < session.policy.tokens(session.restored_section("s")) <= 300


def test_a_size_that_is_no_number_of_tokens_is_refused() -> None:
    with pytest.raises(UsageError, match="the window is not known"):
        Policy(restore=Budget(max_tokens=0.5))
    with pytest.raises(UsageError, match="'much' is not a number of tokens"):
        Policy().restoring("much")
    assert Policy().restoring("") == Policy()
    assert Policy().restoring("700") == replace(Policy(), restore=Budget(max_tokens=700))


def test_files_that_the_host_puts_back_are_left_to_it(session: Session) -> None:
    session.observe("cat f", text(of="f"), call_id="c1")
    session.observe("cat g", text(of="g"), call_id="c2")
    plan = session.restore_plan(without=["/w/g"])
    assert [item.path for item in plan.items] == ["/w/f"]
    assert plan.left_out == (("/w/g", "the host puts it back"),)
