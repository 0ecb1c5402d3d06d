"""A reply that nobody has confirmed: shown in full in every figure, and nothing in the view."""

from __future__ import annotations

from pathlib import Path

import pytest

from readcache import Outcome, Reason, Reply, Session
from readcache.core.model.errors import UsageError
from readcache.core.model.events import Delivered
from tests.helpers.files import TEXT

SAVED = ("tokens_saved", "covered", "unconfirmed", "not_sent", "not_proven")


def figures(session: Session) -> dict[str, int]:
    """The counters that say what was saved."""
    counts = session.stats()
    return {name: counts[name] for name in SAVED if counts.get(name)}


def shown_and_asked(session: Session) -> Reply:
    """`cat f` as call 1, then again as call 2, whose answer nobody has confirmed."""
    session.observe("cat f", TEXT, call_id="1")
    reply = session.observe("cat f", TEXT, call_id="2", commit=False)
    assert reply.outcome is Outcome.UNCHANGED
    return reply


def test_an_unconfirmed_reply_counts_as_shown_in_full(session: Session) -> None:
    shown_and_asked(session)
    counts = session.stats()
    assert (counts["calls"], counts["output_chars"], counts["shown_chars"]) == (2, 2 * len(TEXT), 2 * len(TEXT))
    assert figures(session) == {"unconfirmed": 1}


def test_a_committed_reply_counts_as_one_that_was_never_in_doubt(session: Session) -> None:
    reply = shown_and_asked(session)
    session.commit("2")
    other = Session(session.root)
    other.observe("cat f", TEXT, call_id="1")
    other.observe("cat f", TEXT, call_id="2")
    assert session.stats() == other.stats()
    assert figures(session) == {"covered": 1, "tokens_saved": reply.tokens_saved}


def test_a_second_commit_changes_nothing(session: Session) -> None:
    shown_and_asked(session)
    session.commit("1")
    session.commit("2")
    before = session.stats(), len(session.events())
    session.commit("2")
    assert (session.stats(), len(session.events())) == before


def test_a_commit_of_an_unknown_call_is_a_mistake(session: Session) -> None:
    shown_and_asked(session)
    with pytest.raises(UsageError, match="unknown call '3'"):
        session.commit("3")


def test_another_process_commits_by_the_calls_id(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    asking = Session(tmp_path, session_id="s", store=store)
    reply = shown_and_asked(asking)
    with Session(tmp_path, session_id="s", store=store) as other:
        assert figures(other) == {"unconfirmed": 1}
        other.commit("2")
        assert figures(other) == {"covered": 1, "tokens_saved": reply.tokens_saved}
    assert figures(asking) == {"covered": 1, "tokens_saved": reply.tokens_saved}


def test_an_unconfirmed_reply_is_no_source_and_a_committed_one_is(session: Session) -> None:
    new = "".join(f"a line that only the second output has, number {n}\n" for n in range(60))
    session.observe("cat f", TEXT, call_id="1")
    partial = session.observe("cat f g", TEXT + new, call_id="2", commit=False)
    assert partial.outcome is Outcome.PARTIAL
    assert session.observe("cat g", new, call_id="3", batch="b").outcome is Outcome.FULL
    session.rewind("2")
    session.commit("2")
    again = session.observe("cat g", new, call_id="4")
    assert [omitted.sources for omitted, _, _ in again.omissions()] == [("2",)]


def test_a_reply_that_omits_nothing_needs_nobody_to_confirm_it(session: Session) -> None:
    session.observe("cat f", TEXT, call_id="1", commit=False)
    assert session.observe("cat f", TEXT, call_id="2").reason is Reason.COVERED


def test_the_replys_own_text_confirms_it(session: Session) -> None:
    reply = shown_and_asked(session)
    session.settle("2", reply.text)
    assert figures(session) == {"covered": 1, "tokens_saved": reply.tokens_saved}


def test_the_full_text_makes_it_a_full_delivery_and_a_source(session: Session) -> None:
    reply = shown_and_asked(session)
    session.settle("2", reply.full_text)
    assert figures(session) == {"not_sent": 1}
    counts = session.stats()
    assert counts["shown_chars"] == counts["output_chars"]
    session.sync([{"role": "tool", "tool_call_id": "2", "content": TEXT}])
    third = session.observe("cat f", TEXT, call_id="3")
    assert [omitted.sources for omitted, _, _ in third.omissions()] == [("2",)]
    (row,) = [r.event for r in session.events() if isinstance(r.event, Delivered) and r.event.call_id == "2"]
    assert row.account is not None
    assert (row.account.outcome, row.account.reason, row.text) == (Outcome.FULL, Reason.NOT_SENT, TEXT)


def test_another_text_is_what_was_shown(session: Session) -> None:
    shown_and_asked(session)
    session.settle("2", TEXT[:200])
    session.sync([{"role": "tool", "tool_call_id": "2", "content": TEXT[:200]}])
    assert [d.event.text for d in session.view.deliveries] == [TEXT[:200]]
    assert not figures(session).get("tokens_saved")


def test_a_list_that_has_the_reply_confirms_it(session: Session) -> None:
    reply = shown_and_asked(session)
    first = {"role": "tool", "tool_call_id": "1", "content": TEXT}
    assert session.sync([first]) == {}, "the result is not in the list yet"
    assert figures(session) == {"unconfirmed": 1}
    assert session.sync([first, {"role": "tool", "tool_call_id": "2", "content": reply.text}]) == {}
    assert figures(session) == {"covered": 1, "tokens_saved": reply.tokens_saved}


def test_a_list_that_has_the_full_text_makes_it_a_full_delivery(session: Session) -> None:
    shown_and_asked(session)
    messages = [{"role": "tool", "tool_call_id": name, "content": TEXT} for name in "12"]
    assert session.mend(messages) is messages
    assert figures(session) == {"not_sent": 1}
    assert session.mend(messages[1:]) == messages[1:]
    third = session.observe("cat f", TEXT, call_id="3")
    assert [omitted.sources for omitted, _, _ in third.omissions()] == [("2",)]


def test_a_list_without_the_source_gives_the_lines_back(session: Session) -> None:
    reply = shown_and_asked(session)
    repaired = session.mend([{"role": "tool", "tool_call_id": "2", "content": reply.text}])
    assert repaired[0]["content"] == TEXT
    assert session.mend(repaired) is repaired
    assert not figures(session).get("tokens_saved")


def test_a_host_that_keeps_a_call_in_a_compaction_has_shown_it(session: Session) -> None:
    reply = shown_and_asked(session)
    done = session.compacted(keep=["2"])
    assert list(done.rewrites) == ["2"], "its source is gone"
    assert "gone" in done.rewrites["2"] or done.rewrites["2"] != reply.text
    assert figures(session) == {"covered": 1, "tokens_saved": reply.tokens_saved}


def test_a_kept_reply_with_a_kept_source_stays_as_it_is(session: Session) -> None:
    reply = shown_and_asked(session)
    assert session.compacted(keep=["1", "2"]).rewrites == {}
    assert figures(session) == {"covered": 1, "tokens_saved": reply.tokens_saved}


@pytest.mark.parametrize("leave", ["compacted", "rewind", "forget"])
def test_what_left_before_it_was_confirmed_stays_unconfirmed(session: Session, leave: str) -> None:
    shown_and_asked(session)
    if leave == "compacted":
        session.compacted(keep=["1"])
    elif leave == "rewind":
        session.rewind("1")
    else:
        session.reader.forget("2")
    session.commit("2")
    assert figures(session) == {"unconfirmed": 1}
    assert not session.view.is_visible("2")


def test_a_process_that_ends_or_is_killed_leaves_it_to_be_confirmed(tmp_path: Path) -> None:
    for store, in_order in ((tmp_path / "a.db", True), (tmp_path / "b.db", False)):
        first = Session(tmp_path, session_id="s", store=store)
        reply = shown_and_asked(first)
        first.end(in_order=in_order)
        with Session(tmp_path, session_id="s", store=store) as other:
            other.observe("true", "", call_id="3")
            assert figures(other) == {"unconfirmed": 1}
            other.commit("2")
            assert figures(other) == {"covered": 1, "tokens_saved": reply.tokens_saved}


def test_several_replies_are_confirmed_in_any_order(session: Session) -> None:
    session.observe("cat f", TEXT, call_id="1")
    other = TEXT.replace("line", "word")
    session.observe("cat g", other, call_id="2")
    replies = [
        session.observe(f"cat {name}", text, call_id=name, commit=False) for name, text in (("f", TEXT), ("g", other))
    ]
    assert figures(session) == {"unconfirmed": 2}
    for name in ("g", "f"):
        session.commit(name)
    assert figures(session) == {"covered": 2, "tokens_saved": sum(reply.tokens_saved for reply in replies)}


def test_a_write_in_between_outdates_it_all_the_same(session: Session) -> None:
    session.observe("cat f", TEXT, call_id="1")
    new = "".join(f"a line that only the second output has, number {n}\n" for n in range(60))
    session.observe("cat f g", TEXT + new, call_id="2", commit=False)
    session.wrote("g", call_id="3")
    session.commit("2")
    assert session.observe("cat g", new, call_id="4").reason is Reason.WRITTEN


def test_a_request_that_is_repeated_gets_the_bytes_although_nobody_confirmed(session: Session) -> None:
    shown_and_asked(session)
    assert session.observe("cat f", TEXT, call_id="3", commit=False).reason is Reason.INSISTED


def test_a_fork_that_inherits_may_confirm_what_was_open(tmp_path: Path) -> None:
    session = Session(tmp_path)
    reply = shown_and_asked(session)
    child = session.fork("child", inherit=True)
    child.commit("2")
    assert [d.event.text for d in child.view.deliveries] == [TEXT, reply.text]
    assert figures(session) == {"unconfirmed": 1}


def test_results_that_were_not_judged_are_counted(session: Session) -> None:
    session.observe("cat f", TEXT)
    session.missed(3, "the server was late")
    session.missed(0, "nothing")
    assert session.stats()["missed"] == 3
