from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Session
from readcache.context import History
from readcache.context.history import difference
from readcache.messages.messages import normalise
from readcache.messages.structure import repair
from readcache.model.history_events import CondensationRequested, Condensed, Item, Replaced
from tests.helpers.chats import APIS, scripted, user
from tests.helpers.histories import condensed, itemised, restart

shapes = st.sampled_from(APIS)


def folded(history: History, name: str, messages: list[Mapping[str, Any]]) -> list[Condensed | Replaced]:
    """The events of a compaction that ended in `messages`, appended."""
    events = difference(name, history.view, normalise(history.messages()), normalise(messages))
    for event in events:
        history.append(event)
    return events


def test_a_compaction_is_one_event() -> None:
    messages = scripted("openai", "u c1 r1 c2 r2 s")
    history = itemised(messages)
    events = folded(history, "k", [messages[0], user("so far"), *messages[3:]])
    assert events == [condensed("k", "m1 m2", "so far", 1)]


def test_a_second_compaction_forgets_the_summary_of_the_first() -> None:
    messages = scripted("openai", "u c1 r1 c2 r2 s")
    history = itemised(messages)
    folded(history, "k", [messages[0], user("so far"), *messages[3:]])
    assert folded(history, "l", [messages[0], user("all of it")]) == [
        condensed("l", "k-summary m3 m4 m5", "all of it", 1)
    ]
    assert history.events[:6] == itemised(messages).events, "and all that was said is still in the log"


def test_a_summary_and_a_restored_section_are_two() -> None:
    messages = scripted("openai", "u c1 r1 s")
    history = itemised(messages)
    events = folded(history, "k", [messages[0], user("so far"), user("## Files"), messages[3]])
    assert events == [condensed("k", "m1 m2", "so far", 1), condensed("k.2", "", "## Files", 2)]


@pytest.mark.parametrize("shape", APIS)
def test_a_pruned_result_keeps_its_item(shape: str) -> None:
    messages = scripted(shape, "u c1 r1 s")
    history = itemised(messages)
    pruned = json.loads(json.dumps(messages).replace("r1 at 2", "[pruned]"))
    events = folded(history, "k", pruned)
    assert events == [Replaced("m2", pruned[2])]
    assert [item.id for item in history.view] == ["m0", "m1", "m2", "m3"]


def test_a_summary_of_another_shape_is_written_as_it_is() -> None:
    blocks = {"role": "user", "content": [{"type": "text", "text": "so far", "cache_control": {"type": "ephemeral"}}]}
    history = itemised(scripted("anthropic", "u s"))
    assert folded(history, "k", [blocks]) == [condensed("k", "m0 m1", "so far", 0), Replaced("k-summary", blocks)]


def test_the_same_words_of_another_speaker_are_another_message() -> None:
    history = itemised([user("yes"), {"role": "assistant", "content": "yes"}])
    assert folded(history, "k", history.messages()[1:]) == [condensed("k", "m0")]


def test_a_compaction_that_changed_nothing_is_none_and_answers_no_request() -> None:
    history = itemised(scripted("openai", "u c1 r1"))
    history.append(CondensationRequested())
    assert folded(history, "k", json.loads(json.dumps(history.messages()))) == []
    assert history.requested
    folded(history, "k", history.messages()[:1])
    assert not history.requested


SCRIPTS = st.lists(st.sampled_from(["u", "s", "c1", "c1,2", "t3", "r1", "r2", "r3"]), max_size=8).map(" ".join)


@given(shapes, SCRIPTS, st.data())
def test_after_its_events_a_view_holds_the_compacted_messages(shape: str, script: str, data: st.DataObject) -> None:
    messages = scripted(shape, script)
    history = itemised(messages)
    other = st.sampled_from([*messages, *scripted(shape, "u s"), *scripted(shape, data.draw(SCRIPTS))])
    for name in ("k", "l"):
        after = data.draw(st.lists(other, max_size=8))
        before = history.messages()
        events = folded(history, name, after)
        assert history.messages() == after
        assert (events == []) == (before == after)
        assert restart(history).view == history.view
        assert history.events[: len(messages)] == itemised(messages).events


def test_a_late_result_after_a_crash_is_found_in_the_view() -> None:
    """The harness wrote that the call was interrupted, and then its result came after all."""
    messages = scripted("openai", "u c1 e1 u r1")
    history = itemised(messages)
    folded(history, "k", repair(history.messages()))
    assert history.messages() == messages[:4]
    assert len(history.events) == 6


def test_what_a_session_restores_and_mends_at_a_compaction_is_in_the_view(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("".join(f"line {n} of a file that is read twice\n" for n in range(40)))
    session = Session(root=tmp_path)
    messages: list[Mapping[str, Any]] = [user("Look at f, twice.")]
    for call_id in ("1", "2"):
        call, result = scripted("openai", f"c{call_id} r{call_id}")
        messages += [call, {**result, "content": session.run("cat f", call_id=call_id).text}]
    history = itemised(messages)

    plan = session.restore_plan(keep=["2"])
    done = session.compacted(keep=["2"], restored=plan)
    mended = {**messages[4], "content": done.rewrites["2"]}
    folded(history, "k", [messages[0], plan.to_message(), messages[3], mended])

    assert session.markers_in(str(history.messages()[3]["content"]))
    assert [item.id for item in history.view] == ["m0", "k-summary", "m3", "m4"]
    assert repair(history.messages()) == history.messages()
    assert [event.message for event in history.events[:5] if isinstance(event, Item)] == messages
