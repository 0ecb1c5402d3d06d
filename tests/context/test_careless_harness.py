"""Harnesses that cut, strip, quote, forget and bring back: pruning and compaction leave every marker true."""

from __future__ import annotations

import pytest

from readcache import Session
from readcache.context import Compactor, How, prune
from tests.helpers.chats import APIS, Messages, Step, chat, results, roles_alternate, text, texts
from tests.helpers.compactor import SUMMARY, Model, assert_true_markers

each_shape = pytest.mark.parametrize("shape", APIS)
WRITE = f"cat > f <<'EOF'\n{text(1, 40, of='new')}EOF\n"


def observed(session: Session, call_id: str, command: str, output: str) -> Step:
    return Step(command, session.observe(command, output, call_id=call_id).text)


@each_shape
def test_a_result_without_its_last_newline_is_known_to_the_session(shape: str) -> None:
    session = Session("/w")
    read = Step("cat f", observed(session, "c1", "cat f", text()).output.strip())  # type: ignore[union-attr]
    written = observed(session, "c2", WRITE, "")
    after = prune(chat(shape, read, written, observed(session, "c3", "ls", "f\n")), session)
    assert "as read before the file was overwritten" in results(after)["c1"]


@each_shape
def test_what_a_harness_cut_is_pruned_at_once(shape: str) -> None:
    session = Session("/w")
    read = observed(session, "c1", "cat f", text(1, 60))
    cut = Step("cat f", "\n".join(str(read.output).split("\n")[:40]))
    written = observed(session, "c2", WRITE, "")
    messages = chat(shape, cut, written, observed(session, "c3", "make", text(1, 300, of="log")))
    after = prune(messages, session, protect_last_turns=0)
    assert "as read before the file was overwritten" in results(after)["c1"]
    assert prune(after, session, protect_last_turns=0) is after


@each_shape
def test_the_task_may_quote_a_file_that_is_compacted_away(shape: str) -> None:
    session = Session("/w")
    messages = chat(shape, observed(session, "c1", "cat f", text()))
    messages[-3] = {"role": "user", "content": f"Fix this:\n{text()}"}
    compactor = Compactor(session, Model(SUMMARY), trigger_tokens=10, keep_turns=0)
    after = compactor.compact(messages)
    assert compactor.report.how is How.SUMMARISED
    assert "c1" not in [delivery.event.call_id for delivery in session.view.deliveries]
    assert_true_markers(session, after)


def plain(*turns: tuple[str, str]) -> Messages:
    messages: Messages = [{"role": "user", "content": "fix the bug"}]
    for command, shown in turns:
        messages.append({"role": "assistant", "content": f"so\n\n```bash\n{command}\n```"})
        messages.append({"role": "user", "content": f"<output>\n{shown}</output>"})
    return messages


def test_without_ids_only_the_marker_that_is_retired_changes() -> None:
    session = Session("/w")
    session.observe("cat f", text(1, 60))
    whole = text(1, 60, of="other")
    shown = session.observe("cat g f", whole + text(1, 60)).text
    assert session.markers_in(shown)
    cut = shown.split("\n", 5)[-1]  # nobody told the session
    messages = plain(("cat f", text(1, 60)), ("cat g f", f"before\n{cut}after\n"), ("true", ""))
    after = Compactor(session, Model(SUMMARY), trigger_tokens=10, keep_turns=2).compact(messages)
    kept = "\n".join(texts(after))
    assert session.markers_in(kept) == [line for line in session.markers_in(kept) if line.startswith("[GONE")] != []
    assert "<output>\nbefore\n" in kept
    assert "\nafter\n</output>" in kept


@each_shape
def test_a_reply_that_stays_though_it_was_said_to_be_gone_loses_its_markers(shape: str) -> None:
    session = Session("/w")
    steps = [observed(session, f"c{n}", "cat f", text(1, 60)) for n in (1, 2)]
    steps.append(observed(session, "c3", "make", text(1, 300, of="log")))
    session.compacted(keep=["c1", "c3"])
    after = Compactor(session, Model(SUMMARY), trigger_tokens=10, keep_turns=2).compact(chat(shape, *steps))
    assert results(after)["c2"].startswith(f"[GONE {session.tag}.2: ")
    assert_true_markers(session, after)
    assert shape == "openai" or roles_alternate(after)


@each_shape
def test_a_reply_that_a_harness_cleared_is_no_obstacle_to_a_compaction(shape: str) -> None:
    session = Session("/w")
    steps = [observed(session, f"c{n}", "cat f", text(1, 60)) for n in (1, 2)]
    steps = [steps[0], Step("cat f", ""), observed(session, "c3", "make", text(1, 300, of="log"))]
    session.sync(chat(shape, *steps))
    after = Compactor(session, Model(SUMMARY), trigger_tokens=10, keep_turns=2).compact(chat(shape, *steps))
    assert results(after)["c2"] == ""
    assert_true_markers(session, after)


def test_an_old_marker_is_retired_also_where_a_newer_result_has_its_id() -> None:
    session = Session("/w")
    session.observe("cat f", text(), call_id="c1")
    marked = session.observe("head -n 40 f", text(1, 40), call_id="c2").text
    session.compacted(keep=["c1"])
    newer = session.observe("cat g", text(of="g"), call_id="c2").text
    told = session.mend([{"role": "tool", "tool_call_id": "c2", "content": content} for content in (marked, newer)])
    assert [message["content"] for message in told[1:]] == [newer]
    assert session.markers_in(marked)[0] not in str(told[0]["content"])
    assert session.view.covers("/w/g", 1, newer.count("\n"))
