from __future__ import annotations

import json
from pathlib import Path

import pytest

from readcache import Budget, Policy, Reason, Session
from tests.helpers.files import text, with_numbers
from tests.helpers.replies import sources
from tests.laws.oracle import Reader

# ------------------------------------------------------------ the plan


def test_the_files_read_last_come_first(session: Session) -> None:
    for name in "abc":
        session.observe(f"cat {name}", text(of=name))
    session.observe("head -n 30 a", text(1, 30, of="a"))
    assert [item.path for item in session.restore_plan().items][:2] in (["/w/a", "/w/c"], ["/w/c", "/w/b"])


def test_what_stays_visible_is_not_restored(session: Session) -> None:
    session.observe("sed -n '1,30p' f", text(1, 30), call_id="c1")
    session.observe("sed -n '21,60p' f", text(21, 60), call_id="c2")
    plan = session.restore_plan(keep=["c1"])
    assert [(item.start, item.end) for item in plan.items] == [(31, 60)]
    assert session.restore_plan(keep=["c1", "c2"]).items == ()


def test_an_item_holds_the_lines_that_it_names(session: Session) -> None:
    session.observe("sed -n '11,40p' f", text(11, 40))
    (item,) = session.restore_plan().items
    assert (item.path, item.start, item.end, item.text) == ("/w/f", 11, 40, text(11, 40).rstrip("\n"))
    assert item.tokens == session.policy.count_tokens(item.text)


def test_lines_are_restored_as_they_are_on_disk_where_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(text())
    session = Session(tmp_path)
    session.run("cat f")
    (tmp_path / "f").write_text(text(of="row"))
    plan = session.restore_plan()
    assert plan.items[0].text == text(of="row").rstrip("\n")
    session.compacted(restored=plan)
    assert session.run("cat f").reason is Reason.COVERED


@pytest.mark.parametrize("budget", [Budget(max_files=2), Budget(max_tokens=900), Budget(max_tokens_per_file=100)])
def test_a_budget_is_kept(session: Session, budget: Budget) -> None:
    for name in "abcdef":
        session.observe(f"cat {name}", text(of=name))
    plan = session.restore_plan(budget=budget)
    tokens = {path: sum(i.tokens for i in plan.items if i.path == path) for path in {i.path for i in plan.items}}
    assert 0 < len(tokens) <= budget.max_files
    assert sum(tokens.values()) <= budget.max_tokens
    assert max(tokens.values()) <= budget.max_tokens_per_file


def test_nothing_is_dropped_in_silence(session: Session) -> None:
    for name in "abcdefgh":
        session.observe(f"cat {name}", text(of=name))
    plan = session.restore_plan()
    assert {item.path for item in plan.items} | {path for path, _ in plan.left_out} == {f"/w/{n}" for n in "abcdefgh"}
    assert all(why for _, why in plan.left_out)


@pytest.mark.parametrize("name", [".env", "server.pem", "id_rsa", "sub/credentials.json"])
def test_what_looks_like_a_secret_is_left_out(name: str) -> None:
    session = Session("/w", policy=Policy(protected=()))
    session.observe(f"cat {name}", text())
    plan = session.restore_plan()
    assert plan.items == ()
    assert plan.left_out == ((f"/w/{name}", "looks like a secret"),)


def test_a_binary_is_not_restored(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(text())
    session = Session(tmp_path)
    session.run("cat f")
    (tmp_path / "f").write_bytes(b"\0\1\2" * 400)
    assert all("\0" not in item.text for item in session.restore_plan().items)


def test_a_plan_is_json_and_a_message(session: Session) -> None:
    session.observe("cat f", text())
    plan = session.restore_plan()
    assert json.loads(json.dumps(plan.to_dict()))["items"][0]["path"] == "/w/f"
    assert plan.to_message("system") == {"role": "system", "content": plan.render()}
    assert text() in plan.render()


def test_an_empty_plan_renders_to_nothing(session: Session) -> None:
    assert session.restore_plan().render() == ""
    assert session.compacted(restored=session.restore_plan()).restored_id is None


# ------------------------------------------------------------ the compaction


def test_calls_that_are_not_kept_are_gone(session: Session) -> None:
    session.observe("cat f", text(), call_id="c1")
    session.observe("cat g", text(of="row"), call_id="c2")
    session.compacted(keep=["c2"])
    assert session.observe("cat f", text()).text == text()
    assert sources(session.observe("cat g", text(of="row"))) == {"c2"}


def test_a_restored_section_is_a_source_for_raw_lines_and_for_numbers_that_the_marker_names(session: Session) -> None:
    session.observe("cat -n f", with_numbers())
    plan = session.restore_plan()
    done = session.compacted(restored=plan)
    numbered = session.observe("cat -n f", with_numbers())
    assert sources(numbered) == {done.restored_id}
    assert f'f lines 1-60, same as in the section "{plan.heading}" without numbers' in numbered.text
    session.compacted(keep=[str(done.restored_id)])
    assert sources(session.observe("cat f", text())) == {done.restored_id}


def test_a_kept_marker_is_pointed_at_the_restored_section(session: Session) -> None:
    session.observe("cat f", text(), call_id="c1")
    session.observe("sed -n '5,40p' f", text(5, 40), call_id="c2")
    plan = session.restore_plan(keep=["c2"])
    done = session.compacted(keep=["c2"], restored=plan)
    (rewritten,) = session.markers_in(done.rewrites["c2"])
    assert plan.heading in rewritten


def test_a_kept_marker_without_a_restored_source_says_that_it_is_gone(session: Session) -> None:
    reader = Reader(session, session.policy)
    for call, command, output in (("c1", "cat f", text()), ("c2", "sed -n '5,60p' f", text(5, 60))):
        reader.take(command, session.observe(command, output, call_id=call), output, numbered=False)
    done = session.compacted(keep=["c2"])
    reader.compacted(["c2"], None, done)
    assert set(done.rewrites) == {"c2"}
    assert "no longer above" in done.rewrites["c2"]


def test_a_marker_whose_lines_are_only_partly_restored_is_not_pointed_there(session: Session) -> None:
    session.observe("cat f", text(), call_id="c1")
    session.observe("sed -n '5,60p' f", text(5, 60), call_id="c2")
    plan = session.restore_plan(keep=["c2"], budget=Budget(max_tokens_per_file=200))
    assert (plan.items[0].end or 0) < 60
    done = session.compacted(keep=["c2"], restored=plan)
    assert plan.heading not in done.rewrites["c2"]


def test_a_marker_for_numbered_lines_is_not_pointed_at_a_section_without_numbers(session: Session) -> None:
    session.observe("cat -n f", with_numbers(), call_id="c1")
    session.observe("cat -n f", with_numbers(), call_id="c2")
    plan = session.restore_plan(keep=["c2"])
    done = session.compacted(keep=["c2"], restored=plan)
    assert plan.heading not in done.rewrites["c2"]


def test_what_else_a_kept_reply_shows_stays_as_it_is(session: Session) -> None:
    session.observe("head -n 30 f", text(1, 30), call_id="c1")
    reply = session.observe("cat f", text(), call_id="c2")
    done = session.compacted(keep=["c2"])
    old, new = reply.text.split("\n"), done.rewrites["c2"].split("\n")
    assert len(old) == len(new)
    assert [k for k in range(len(old)) if old[k] != new[k]] == [0]
    assert session.observe("sed -n '31,60p' f", text(31, 60)).reason is Reason.COVERED


def test_markers_whose_sources_stay_are_left_alone(session: Session) -> None:
    """Keeping the latest duplicate voided the prompt cache."""
    session.observe("cat f", text(), call_id="c1")
    session.observe("cat f", text(), call_id="c2")
    assert session.compacted(keep=["c1", "c2"]).rewrites == {}


def test_a_marker_for_another_commands_whole_output_is_retired_too(session: Session) -> None:
    session.observe("make", text(), call_id="c1")
    session.observe("make", text(), call_id="c2")
    done = session.compacted(keep=["c2"], restored=session.restore_plan(keep=["c2"]))
    assert set(done.rewrites) == {"c2"}
    assert session.observe("make", text()).text == text()


def test_a_second_compaction_finds_nothing_left_to_rewrite(session: Session) -> None:
    session.observe("cat f", text(), call_id="c1")
    session.observe("cat f", text(), call_id="c2")
    session.compacted(keep=["c2"])
    assert session.compacted(keep=["c2"]).rewrites == {}


def test_a_rewritten_reply_is_no_source_for_the_lines_it_lost(session: Session) -> None:
    session = Session("/w", policy=Policy(any_output=True, delta=True))
    session.observe("cat f", text(), call_id="c1")
    session.observe("cat f", text(), call_id="c2")
    session.compacted(keep=["c2"])
    assert session.observe("cat f", text()).text == text()


def test_after_a_source_was_cut_later_on_a_compaction_retires_its_markers(session: Session) -> None:
    session.observe("cat f", text(), call_id="c1")
    session.observe("cat f", text(), call_id="c2")
    session.settle("c1", "[cleared]")
    assert set(session.compacted(keep=["c1", "c2"]).rewrites) == {"c2"}


@pytest.mark.parametrize("left", ["before\n[UNCHANGED", "before\n"], ids=["a piece of the marker", "nothing of it"])
def test_a_kept_reply_is_rewritten_where_a_piece_of_a_marker_is_left_and_only_there(
    session: Session, left: str
) -> None:
    session.observe("cat f", text(), call_id="c1")
    reply = session.observe("echo before; cat f", "before\n" + text(), call_id="c2")
    (marker,) = session.markers_in(reply.text)
    session.settle("c2", left.replace("[UNCHANGED", marker[:30]) + "\n[cut]\n")
    rewrites = session.compacted(keep=["c2"]).rewrites
    assert list(rewrites) == ["c2"] * ("[UNCHANGED" in left)
    assert all("before" in rewritten and marker[:30] not in rewritten for rewritten in rewrites.values())
    assert all(len(session.markers_in(rewritten)) == 1 for rewritten in rewrites.values())


def test_a_marker_whose_source_was_cut_is_retired_in_a_copy_of_the_conversation_too(session: Session) -> None:
    session.observe("cat f", text(), call_id="c1")
    session.observe("cat f", text(), call_id="c2")
    session.settle("c1", text(30, 60))
    rewritten = session.fork("twin", inherit=True).compacted(keep=["c1", "c2"]).rewrites
    assert list(rewritten) == ["c2"]
    assert "GONE" in rewritten["c2"]
