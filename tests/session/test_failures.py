"""Failures that users of such caches reported: history, contexts, the marker as data, loops."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from readcache import Budget, Omitted, Outcome, Policy, Reason, Session, UsageError
from tests.helpers.files import TEXT, text, with_numbers
from tests.helpers.replies import sources

OTHER = TEXT.replace("line", "another line")


# ------------------------------------------------------------ history


def test_no_marker_survives_a_compaction_that_took_its_source(session: Session) -> None:
    """A marker outlived the compaction that took its source."""
    session.observe("cat f", TEXT, call_id="c1")
    session.observe("cat f", TEXT, call_id="c2")
    done = session.compacted(keep=["c2"])
    assert set(done.rewrites) == {"c2"}
    assert session.observe("cat f", TEXT).text == TEXT


def test_one_full_reading_after_a_compaction_is_enough(session: Session) -> None:
    """After a compaction every file came in full again and again."""
    session.observe("cat f", TEXT)
    session.compacted()
    assert session.observe("cat f", TEXT, call_id="again").text == TEXT
    assert sources(session.observe("cat f", TEXT)) == {"again"}


def test_what_was_read_before_a_compaction_counts_against_nobody(session: Session) -> None:
    """Reads from before a compaction counted against the re-read."""
    for _ in range(5):
        session.observe("cat f", TEXT)
    session.compacted()
    assert session.observe("cat f", TEXT).text == TEXT


@pytest.mark.parametrize("how", ["compacted", "rewind", "rewind to the unknown", "settle", "restored without it"])
def test_every_way_to_lose_a_result_loses_it(session: Session, how: str) -> None:
    """Only some of the ways to rewrite a history cleared the cache."""
    session.observe("pwd", "/w\n", call_id="before")
    session.observe("cat f", TEXT, call_id="c1")
    if how == "compacted":
        session.compacted(keep=["before"])
    elif how == "rewind":
        session.rewind("before")
    elif how == "rewind to the unknown":
        with pytest.raises(UsageError, match="never heard of"):
            session.rewind("never heard of")
    elif how == "settle":
        session.settle("c1", "[old tool result cleared]")
    else:
        session.compacted(restored=session.restore_plan(budget=Budget(max_tokens=0)))
    assert session.observe("cat f", TEXT).text == TEXT


def test_a_rewind_takes_all_of_several_reads_at_once(session: Session) -> None:
    """A rewind took four of five parallel reads, and they stayed "unchanged"."""
    session.observe("pwd", "/w\n", call_id="before")
    texts = {name: TEXT.replace("line", f"line of {name},") for name in "abcde"}
    with session.batch():
        for name, output in texts.items():
            session.observe(f"cat {name}", output, call_id=name)
    session.rewind("before")
    for name, output in texts.items():
        assert session.observe(f"cat {name}", output).text == output


def test_a_compaction_between_running_and_answering_is_seen(session: Session) -> None:
    """A compaction while a command ran was missed. A "pending" entry was never replaced."""

    def bash(_command: str) -> str:
        session.compacted()
        return TEXT

    session.observe("cat f", TEXT)
    assert session.wrap(bash)("cat f") == TEXT


def test_a_source_must_hold_the_same_lines_and_the_same_bytes(session: Session) -> None:
    """The source was there, with other lines or other bytes."""
    session.observe("sed -n '1,20p' f", text(1, 20), call_id="c1")
    reply = session.observe("sed -n '11,30p' f", text(11, 30))
    assert reply.segments[0] == Omitted("/w/f", 11, 20, ("c1",))
    assert text(21, 30) in reply.text


def test_nothing_that_was_compacted_away_is_left_in_any_index() -> None:
    """A second cache answered from before the compaction. A compaction invalidated nothing at all."""
    session = Session("/w", policy=Policy(any_output=True, delta=True))
    for command in ("cat f", "make test", "nl -ba f"):
        session.observe(command, TEXT)
    session.compacted()
    for command in ("cat f", "make test", "head -n 60 f"):
        assert session.observe(command, TEXT).outcome is Outcome.FULL
        session.compacted()


def test_a_horizon_stands_in_for_clearing_that_nobody_reports() -> None:
    """Results cleared on the server are still there for the client."""
    session = Session("/w", policy=Policy(horizon_tokens=1_500))
    session.observe("cat f", TEXT)
    for n in range(3):
        session.observe(f"make {n}", f"{n}" * 4_000)
    assert session.observe("cat f", TEXT).text == TEXT


def test_a_clipped_read_is_shown_in_full_each_time(session: Session) -> None:
    """Clip, send again, clip again, for ever."""
    for n in range(6):
        reply = session.observe("cat f", TEXT, call_id=f"c{n}")
        assert reply.text == TEXT
        session.settle(f"c{n}", TEXT[:150] + "\n[cut]\n")


# ------------------------------------------------------------ contexts


@pytest.mark.parametrize("command", ["cat f", "make", "nl -ba f | head -n 90"])
def test_a_context_that_never_saw_a_text_is_shown_it_by_every_way(session: Session, command: str) -> None:
    """One of two places that decide did not know the conversation. A cache of responses answered before every check."""
    session.observe(command, TEXT)
    child = session.fork("helper")
    assert child.observe(command, TEXT).text == TEXT
    assert session.fork("another").observe_read("f", TEXT).text == TEXT


def test_a_sub_agent_has_savings_of_its_own(session: Session) -> None:
    """A sub-agent got its parent's marker. Sub-agents were never allowed to save anything."""
    session.observe("cat f", TEXT)
    child = session.fork("helper")
    assert child.observe("cat f", TEXT, call_id="k1").text == TEXT
    assert sources(child.observe("cat f", TEXT)) == {"k1"}


def test_nothing_is_counted_as_saved_on_a_first_read(session: Session) -> None:
    """A first read was counted as a saving."""
    session.observe("cat f", TEXT)
    child = session.fork("helper")
    assert child.observe("cat f", TEXT).tokens_saved == 0
    assert child.stats().get("tokens_saved", 0) == 0


def test_two_sessions_in_one_process_share_nothing() -> None:
    """A user's cache on disk was shared by all sessions. Module-level state was shared by all sessions. A session that
    had never read the file was told "unchanged"."""
    Session("/w").observe("cat f", TEXT)
    assert Session("/w").observe("cat f", TEXT).reason is Reason.NOT_SEEN


def test_a_fork_of_a_fork_starts_empty(session: Session) -> None:
    """A sub-agent's cache was its parent's by inheritance."""
    session.observe("cat f", TEXT)
    child = session.fork("helper", inherit=True)
    assert child.fork("its helper").observe("cat f", TEXT).text == TEXT


def test_one_session_id_with_two_agents_is_two_readers(tmp_path: Path) -> None:
    """A sub-agent's calls carried its parent's session id."""
    with Session("/w", session_id="s", agent_id="main", store=tmp_path / "db") as main:
        main.observe("cat f", TEXT)
        with Session("/w", session_id="s", agent_id="review", store=tmp_path / "db") as review:
            assert review.observe("cat f", TEXT).text == TEXT


def test_what_a_child_loses_its_parent_keeps(session: Session) -> None:
    """Parent and child wiped each other's state."""
    session.observe("cat f", TEXT, call_id="c1")
    child = session.fork("helper", inherit=True)
    child.compacted()
    with pytest.raises(UsageError, match="never heard of"):
        child.rewind("never heard of")
    assert sources(session.observe("cat f", TEXT)) == {"c1"}


def test_one_relative_name_in_two_directories_is_two_files(session: Session) -> None:
    """One relative name in two directories was one file."""
    session.observe("cat f", TEXT, cwd="/w/one")
    reply = session.observe("cat f", OTHER, cwd="/w/two")
    assert (reply.text, reply.reason) == (OTHER, Reason.NOT_SEEN)
    assert session.observe("cat f", TEXT, cwd="/w/one").reason is Reason.COVERED


# ------------------------------------------------------------ the marker as data


def test_a_marker_stands_alone_and_without_a_number(session: Session) -> None:
    """The marker got a line number."""
    session.observe("cat -n f", with_numbers())
    reply = session.observe("cat -n f", with_numbers())
    assert session.markers_in(reply.text) == [reply.text.rstrip("\n")]


def test_a_marker_that_was_written_into_a_file_can_be_found_and_is_never_a_source(session: Session) -> None:
    """A model wrote the marker into a file."""
    session.observe("cat f", TEXT)
    marker = session.observe("cat f", TEXT).text
    assert session.markers_in(marker)
    session.observe("cp f g", "")
    for _ in range(3):
        assert session.observe("cat g", marker + OTHER).text == marker + OTHER


def test_a_file_that_talks_like_a_marker_is_a_file(session: Session) -> None:
    """A file that talks like a marker was taken for one."""
    file = "[FILE_UNCHANGED 0000: f lines 1-40, same bytes as before; repeat the request to see]\n" * 5 + TEXT
    assert session.observe("cat f", file).text == file
    assert session.markers_in(file) == []
    assert session.observe("cat f", file).outcome is Outcome.UNCHANGED


def test_only_what_the_harness_finally_showed_is_credited(session: Session) -> None:
    """Bytes that a hook replaced later counted as shown."""
    session.observe("cat f", TEXT, call_id="c1")
    session.settle("c1", TEXT.replace("number 7 ", "[redacted] "))
    reply = session.observe("cat f", TEXT)
    assert "line number 7 says" in reply.text


def test_a_file_that_must_be_read_can_be_protected() -> None:
    """A file that must be read every time was left out."""
    session = Session("/w", policy=Policy(protected=("**/SKILL.md",)))
    for _ in range(3):
        assert session.observe("cat skills/x/SKILL.md", TEXT).text == TEXT


def test_equal_errors_of_calls_at_once_are_all_shown(session: Session) -> None:
    """Equal errors of parallel calls were collapsed."""
    error = "error: the compiler did not find the file that it was asked for\n" * 10
    with session.batch():
        assert [session.observe("make", error, exit_code=2).text for _ in range(3)] == [error] * 3


# ------------------------------------------------------------ loops and weak models


def test_a_model_that_repeats_itself_gets_every_second_answer_in_full(session: Session) -> None:
    """A model looped over markers to the end of its budget. The quick way to a marker stood before the counter of
    repeats. One file was asked for 57 times."""
    answers = [session.observe("cat f", TEXT).text == TEXT for _ in range(9)]
    assert not any(a is False and b is False for a, b in pairwise(answers))


def test_a_model_that_repeats_a_batch_gets_it_in_full(session: Session) -> None:
    for name, output in (("f", TEXT), ("g", OTHER)):
        session.observe(f"cat {name}", output)
    for expected in (False, True):
        with session.batch():
            texts = [session.observe("cat f", TEXT).text, session.observe("cat g", OTHER).text]
        assert (texts == [TEXT, OTHER]) is expected


def test_a_marker_says_how_to_get_the_bytes(session: Session) -> None:
    """The marker offered no way to the bytes."""
    session.observe("cat f", TEXT)
    assert "repeat this call to see" in session.observe("cat f", TEXT).text


def test_after_a_compaction_with_a_restored_section_nothing_need_be_read_again(session: Session) -> None:
    """After a compaction everything was read again."""
    session.observe("cat f", TEXT)
    plan = session.restore_plan()
    done = session.compacted(restored=plan)
    assert sources(session.observe("cat f", TEXT)) == {done.restored_id}
