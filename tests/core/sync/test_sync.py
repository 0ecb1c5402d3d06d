"""`Session.sync`: the message list is the truth, whatever a harness did to it.

The failure to prevent is a marker that points at what the reader does not hold.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Head, HeadTail, Outcome, Policy, Reply, Session, UsageError
from readcache.core.model.call import command_call
from readcache.core.model.events import Amended, Forgot, Origin
from readcache.core.shell.read import read_command
from readcache.log.log import Log
from readcache.log.reader import Confirm, Reader
from readcache.log.store import open_store
from tests.helpers.chats import SHAPES, SHAPES_WITH_IDS, WORDS_IN_FRONT, message_list, server_compaction
from tests.helpers.files import text
from tests.helpers.replies import omits, sources

each_shape = pytest.mark.parametrize("shape", SHAPES)
with_ids = pytest.mark.parametrize("shape", SHAPES_WITH_IDS)
Turns = list[tuple[str, str, str]]


def read(session: Session, call_id: str, path: str = "f", output: str = "") -> tuple[str, str, str]:
    """A turn of the conversation: `cat path`, and what it was answered with."""
    reply = session.observe(f"cat {path}", output or text(of=path), call_id=call_id)
    return call_id, f"cat {path}", reply.text


def kinds(session: Session) -> list[str]:
    return [type(record.event).__name__ for record in session.events()]


# ------------------------------------------------------------ what the API drops by itself


@pytest.mark.parametrize("shape", ["item", "block", "block after words"])
def test_what_stands_before_a_server_side_compaction_is_not_in_view(session: Session, shape: str) -> None:
    """Clients keep the whole history, and the API drops what stands before the item or block."""
    turns = [read(session, "c1"), read(session, "c2", "g")]
    messages = message_list("anthropic" if "block" in shape else "openai", turns)
    compaction = server_compaction("anthropic" if "block" in shape else "openai")
    if "words" in shape:
        compaction["content"].insert(0, {"type": "text", "text": text(of="f")})
    later = message_list("anthropic" if "block" in shape else "openai", [read(session, "c3", "h")])
    messages = [*messages, compaction, *later]
    assert session.mend(messages) is messages
    assert session.observe("cat f", text(of="f"), call_id="c4").outcome is Outcome.FULL
    assert sources(session.observe("cat h", text(of="h"), call_id="c5")) == {"c3"}


def test_a_marker_after_a_server_side_compaction_does_not_point_before_it(session: Session) -> None:
    turns = [read(session, "c1"), read(session, "c2")]
    messages = message_list("openai", turns)
    messages.insert(-2, server_compaction("openai"))
    assert "UNCHANGED" in messages[-1]["content"]
    assert session.mend(messages)[-1]["content"] == text(of="f")


@with_ids
@pytest.mark.parametrize("by_ids", [False, True])
def test_a_result_that_the_provider_cleared_is_not_in_view(session: Session, shape: str, by_ids: bool) -> None:
    """Clients keep the whole history, and the API clears the oldest results of the request (`clear_tool_uses`)."""
    turns = [read(session, "c1"), read(session, "c2", "g"), read(session, "c3", "h")]
    messages = message_list(shape, turns)
    for _ in range(2):  # saying it again changes nothing
        assert session.mend(messages, cleared=["c1"] if by_ids else 1) is messages
        assert session.sync(messages, cleared=["c1"] if by_ids else 1) == {}
    assert session.observe("cat f", text(of="f"), call_id="c4").outcome is Outcome.FULL
    assert sources(session.observe("cat g", text(of="g"), call_id="c5")) == {"c2"}


@with_ids
def test_a_marker_does_not_point_at_a_result_that_the_provider_cleared(session: Session, shape: str) -> None:
    messages = message_list(shape, [read(session, "c1"), read(session, "c2")])
    assert session.sync(messages, cleared=1)["c2"].count("\n") >= text(of="f").count("\n")
    repaired = session.mend(messages, cleared=1)
    assert text(of="f").split("\n")[20] in str(repaired[-1])
    assert repaired[:-1] == messages[:-1], "the provider clears the others by itself: a change would cost its cache"


def test_results_of_excluded_tools_are_not_counted_as_cleared(session: Session) -> None:
    messages = message_list("anthropic", [read(session, "c1"), read(session, "c2", "g")])
    messages[1]["content"][-1]["name"] = "memory"
    session.sync(messages, cleared=1, excluded=["memory"])
    assert sources(session.observe("cat f", text(of="f"), call_id="c3")) == {"c1"}
    assert session.observe("cat g", text(of="g"), call_id="c4").outcome is Outcome.FULL


@pytest.mark.parametrize(
    ("field", "wrong"), [("cleared", "c1"), ("cleared", -1), ("cleared", True), ("excluded", "bash")]
)
def test_a_wrong_account_of_what_was_cleared_is_refused_and_loses_nothing(
    session: Session, field: str, wrong: object
) -> None:
    messages = message_list("openai", [read(session, "c1")])
    with pytest.raises(UsageError, match=field):
        session.sync(messages, **{field: wrong})  # type: ignore[arg-type]
    assert session.view.is_visible("c1")


# ------------------------------------------------------------ what stays


@each_shape
def test_what_stands_in_the_list_stays_visible_and_nothing_is_logged(session: Session, shape: str) -> None:
    turns = [read(session, "c1"), read(session, "c2", "g")]
    before = kinds(session)
    for _ in range(2):  # lists that are rebuilt for each step, too
        assert session.sync(message_list(shape, turns)) == {}
    assert kinds(session) == before
    assert sources(session.observe("cat f", text(of="f"))) == {"c1"}


@each_shape
def test_order_does_not_matter(session: Session, shape: str) -> None:
    turns = [read(session, "c1"), read(session, "c2", "g")]
    session.sync(message_list(shape, turns[::-1]))
    assert len(session.view.deliveries) == 2


def test_a_result_stays_whatever_words_a_harness_puts_around_it(session: Session) -> None:
    _, _, shown = read(session, "c1")
    wrapped = f"<system>exit 0</system>\n{shown.rstrip()}\n[python: /venv]\n"
    session.sync([{"role": "tool", "tool_call_id": "c1", "content": wrapped}])
    assert session.view.covers("/w/f", 1, 60)


def test_a_result_stays_that_the_harness_shows_as_json_from_the_first_on(session: Session) -> None:
    # mini-swe-agent's own configuration: {"returncode": 0, "output": "…"}
    _, _, shown = read(session, "c1")
    session.sync([{"role": "tool", "tool_call_id": "c1", "content": json.dumps({"returncode": 0, "output": shown})}])
    assert session.view.covers("/w/f", 1, 60)


def test_a_file_that_is_json_itself_stays(session: Session) -> None:
    shown = json.dumps({f"key {n}": "value" for n in range(40)}, indent=2) + "\n"
    turn = read(session, "c1", "package.json", shown)
    session.sync(message_list("openai", [turn]))
    assert session.view.covers("/w/package.json", 1, 42)


def test_a_result_under_an_id_unknown_to_the_session_is_found_by_its_text(session: Session) -> None:
    reply = session.observe("cat f", text())
    session.sync([{"role": "tool", "tool_call_id": "call_of_the_api", "content": reply.text}])
    assert omits(session.observe("cat f", text()))


def test_a_result_that_stands_there_twice_is_one(session: Session) -> None:
    turn = read(session, "c1")
    session.sync(message_list("openai", [turn]) * 2)  # a late duplicate of a result after a crash
    assert session.view.covers("/w/f", 1, 60)


# ------------------------------------------------------------ what goes


@each_shape
def test_a_result_that_was_pruned_is_shown_again(session: Session, shape: str) -> None:
    turns = [read(session, "c1"), read(session, "c2", "g")]
    session.sync(message_list(shape, turns[1:]))
    assert session.observe("cat f", text(of="f")).text == text(of="f")
    assert sources(session.observe("cat g", text(of="g"))) == {"c2"}


@each_shape
def test_after_a_rewind_what_came_later_is_gone(session: Session, shape: str) -> None:
    turns = [read(session, "c1"), read(session, "c2", "g")]
    messages = message_list(shape, turns)
    session.sync(messages)
    del messages[-2:]
    session.sync(messages)
    assert sources(session.observe("cat f", text(of="f"))) == {"c1"}
    assert session.observe("cat g", text(of="g")).text == text(of="g")


@each_shape
@pytest.mark.parametrize("placeholder", ["[Old tool result content cleared]", "", "[cleared]"])
def test_a_result_that_was_cleared_in_its_place_is_gone(session: Session, shape: str, placeholder: str) -> None:
    call_id, command, _ = read(session, "c1")
    session.sync(message_list(shape, [(call_id, command, placeholder)]))
    assert session.observe("cat f", text(of="f")).text == text(of="f")


def test_an_empty_list_leaves_nothing(session: Session) -> None:  # /clear
    read(session, "c1")
    session.sync([])
    assert session.view.deliveries == []
    assert session.events()[-1].event == Forgot(frozenset({"c1"}))


@each_shape
def test_results_of_the_batch_that_is_running_may_be_missing_until_the_next_one(session: Session, shape: str) -> None:
    turns = [(name, f"cat {name}", text(of=name)) for name in ("a", "b")]
    for name, command, output in turns:
        session.sync([], batch="1")  # hooks of parallel calls read the list before it has their results
        session.observe(command, output, call_id=name, batch="1")
    session.sync(message_list(shape, turns), batch="2")
    assert [omits(session.observe(command, output, batch="2")) for _, command, output in turns] == [True, True]
    session.sync(message_list(shape, turns[:1]), batch="3")
    assert [delivery.event.call_id for delivery in session.view.deliveries] == ["a"]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_summary_that_tells_of_a_file_is_not_its_text(session: Session, role: str) -> None:
    """A summary kept the hash that proved possession and lost the text."""
    read(session, "c1")
    session.sync([{"role": role, "content": "Read f (60 lines, sha256 1f2e): 'line number 1 says something', ..."}])
    assert session.observe("cat f", text(of="f")).text == text(of="f")


def test_what_the_model_only_thought_is_not_visible(session: Session) -> None:
    _, _, shown = read(session, "c1")
    thinking = {"type": "thinking", "thinking": shown, "signature": "c2ln"}
    session.sync([{"role": "assistant", "content": [thinking]}, {"role": "assistant", "content": shown}])
    assert session.view.deliveries == []


def test_in_a_list_with_ids_a_call_that_is_not_there_is_gone_though_its_text_is_quoted(session: Session) -> None:
    turns = [read(session, "c1"), read(session, "c2", "g")]
    session.sync([{"role": "user", "content": turns[0][2]}, *message_list("openai", turns[1:])])
    assert [d.event.call_id for d in session.view.deliveries] == ["c2"]


def test_when_every_call_left_a_list_with_ids_a_summary_that_quotes_a_result_is_no_source(session: Session) -> None:
    turns = [read(session, "c1"), read(session, "c2", "g")]
    session.sync(message_list("openai", turns))
    session.sync([{"role": "user", "content": f"Summary. The file is:\n{text(of='f')}"}])
    assert session.view.deliveries == []
    assert session.observe("cat f", text(of="f")).text == text(of="f")


def test_a_result_that_is_gone_is_not_looked_for_in_an_older_one_that_came_back(session: Session) -> None:
    older = read(session, "c1")
    session.compacted(keep=[])
    session.observe("sed -n '1,40p' f", text(1, 40, of="f"), call_id="c2")
    session.sync(message_list("openai", [older]))  # the compaction is undone
    assert session.view.deliveries == []


def test_a_result_that_is_not_in_the_list_yet_is_gone_until_it_is_read_again(session: Session) -> None:
    turns = [read(session, "c1")]
    messages = message_list("openai", turns)
    read(session, "c2", "g")
    session.sync(messages)
    assert session.observe("cat g", text(of="g")).text == text(of="g")


def test_without_ids_lines_are_of_the_longer_result_that_was_cut_and_not_of_one_that_equals_its_rest(
    session: Session,
) -> None:
    """The shorter result was cut; all of its lines stand in what a cut left of the longer one."""
    rows = text().splitlines(True)
    short = session.observe("sed -n '30,60p' f", "".join(rows[29:60]), call_id="c1", batch="b").text.splitlines(True)
    session.observe("cat f", "".join(rows), call_id="c2", batch="b")
    left = "".join([*short[:5], "[cut]\n", *short[-5:]]), "".join([*rows[:10], "[cut]\n", *rows[25:]])
    session.mend(message_list("plain", [("c1", "one", left[0]), ("c2", "two", left[1])]))
    assert sources(session.observe("sed -n '30,60p' f", "".join(rows[29:60]), call_id="c3")) == {"c2"}


def test_of_two_equal_results_without_ids_one_that_is_left_is_one_source(session: Session) -> None:
    first = read(session, "c1")
    session.wrote("f")
    second = read(session, "c2")
    assert first[2] == second[2]
    session.sync(message_list("plain", [first]))
    assert [d.event.call_id for d in session.view.deliveries] == ["c2"]
    session.sync([])
    assert session.view.deliveries == []


@with_ids
def test_a_result_whose_id_now_stands_before_another_text_is_gone(session: Session, shape: str) -> None:
    read(session, "c1")
    session.sync(message_list(shape, [("c1", "make", "nothing to be done for 'all'\n" * 20)]))
    assert session.observe("cat f", text(of="f")).text == text(of="f")


# ------------------------------------------------------------ what is left of a text


@each_shape
def test_a_clipped_result_keeps_credit_for_the_lines_that_are_left(session: Session, shape: str) -> None:
    call_id, command, shown = read(session, "c1")
    lines = shown.split("\n")
    clipped = "\n".join([*lines[:20], lines[20][:9], "<elided_chars>\n1200 characters\n</elided_chars>", *lines[41:]])
    session.sync(message_list(shape, [(call_id, command, clipped)]))
    assert [n for n in range(1, 61) if session.view.covers("/w/f", n, n)] == [*range(1, 21), *range(42, 61)]


@each_shape
def test_an_edited_line_is_not_visible_and_the_others_are(session: Session, shape: str) -> None:
    call_id, command, shown = read(session, "c1")
    redacted = shown.replace("number 33 says", "number XX says")
    session.sync(message_list(shape, [(call_id, command, redacted)]))
    assert [n for n in range(1, 61) if not session.view.covers("/w/f", n, n)] == [33]


def test_a_very_long_result_that_was_clipped_inside_a_template_keeps_its_ends(session: Session) -> None:
    output = "".join(f"line number {n} of a very long file\n" for n in range(1, 12_001))
    session.observe("cat f", output, call_id="c1")
    shown = f"<output_head>\n{output[:5000]}\n</output_head>\n<output_tail>\n{output[-5000:]}</output_tail>"
    session.sync([{"role": "tool", "tool_call_id": "c1", "content": shown}])
    visible = [n for n in range(1, 12_001) if session.view.covers("/w/f", n, n)]
    assert 200 < len(visible) < 300
    assert (visible[0], visible[-1]) == (1, 12_000)


def test_the_same_clip_synced_twice_logs_one_settled_event(session: Session) -> None:
    call_id, command, shown = read(session, "c1")
    for last in (40, 20, 20, 20):
        shown = "\n".join(shown.split("\n")[:last])
        session.sync(message_list("openai", [(call_id, command, shown)]))
    assert session.view.covers("/w/f", 1, 20)
    assert not session.view.covers("/w/f", 21, 21)
    assert kinds(session).count("Amended") == 2


def test_a_marker_whose_lines_survive_the_harness_clip_is_not_retired() -> None:
    session = Session("/w", policy=Policy(clip=HeadTail(900, 900)))
    call_id, command, shown = read(session, "c1")
    turn = session.observe("head -n 12 f", text(1, 12, of="f"), call_id="c2")
    assert sources(turn) == {"c1"}
    clipped = f"{shown[:900]}\n... 1,500 characters were cut ...\n{shown[-900:]}"
    assert session.sync(message_list("openai", [(call_id, command, clipped), ("c2", "head f", turn.text)])) == {}


# ------------------------------------------------------------ changes in place


@each_shape
def test_a_message_that_is_changed_in_place_is_noticed(session: Session, shape: str) -> None:
    turns = [read(session, "c1")]
    messages = message_list(shape, turns)
    session.sync(messages)
    replace_text(messages, text(of="f"), "[cleared]\n")
    session.sync(messages)
    assert session.observe("cat f", text(of="f")).text == text(of="f")


def replace_text(thing: Any, old: str, new: str) -> None:
    """In place, however deep it stands."""
    for key, inner in list(thing.items() if isinstance(thing, dict) else enumerate(thing)):
        if isinstance(inner, str):
            thing[key] = inner.replace(old, new)
        elif isinstance(inner, (dict, list)):
            replace_text(inner, old, new)


def test_marks_for_a_prompt_cache_that_wander_change_nothing(session: Session) -> None:
    turns = [read(session, "c1"), read(session, "c2", "g")]
    before = kinds(session)
    messages = message_list("blocks", turns)
    for k in (2, 4):
        messages[k]["content"][0]["cache_control"] = {"type": "ephemeral"}
        session.sync(messages)
    assert kinds(session) == before


def test_messages_may_be_the_objects_of_an_api_package(session: Session) -> None:
    class Block:
        def __init__(self, **fields: object) -> None:
            self.fields = fields

        def model_dump(self, **_: object) -> dict[str, object]:
            return dict(self.fields)

    _, _, shown = read(session, "c1")
    block = Block(type="tool_result", tool_use_id="c1", content=shown)
    messages = [{"role": "user", "content": [block]}]
    session.sync(messages)
    assert session.view.covers("/w/f", 1, 60)
    block.fields["content"] = "[cleared]"
    session.sync(messages)
    assert not session.view.covers("/w/f", 1, 1)


# ------------------------------------------------------------ the agent's own text


@each_shape
def test_what_the_agent_wrote_itself_is_visible_while_its_call_holds_it(session: Session, shape: str) -> None:
    command = f"cat > f <<'EOF'\n{text(1, 30)}EOF\ncat > g <<'EOF'\n{text(31, 60)}EOF"
    session.observe(command, "", call_id="c1")
    session.sync(message_list(shape, [("c1", command, "")]))
    assert session.view.covers("/w/f", 1, 30)
    assert session.view.covers("/w/g", 1, 30)
    assert sources(session.observe("cat f", text(1, 30))) == {"c1"}


@with_ids
def test_when_only_the_call_was_cleared_its_result_stays(session: Session, shape: str) -> None:  # clear_tool_inputs
    command = f"cat > f <<'EOF'\n{text(1, 30)}EOF\ncat g"
    session.observe(command, text(of="row"), call_id="c1")
    session.sync(message_list(shape, [("c1", "[cleared]", text(of="row"))]))
    assert not session.view.covers("/w/f", 1, 1)
    assert session.view.covers("/w/g", 1, 60)
    assert [r.event.origin for r in session.events() if isinstance(r.event, Amended)] == [Origin.COMMAND]


def test_the_content_of_a_write_tool_is_visible_while_its_call_holds_it(session: Session) -> None:
    session.wrote("f", content=text(), call_id="c1")
    call = {"type": "tool_use", "id": "c1", "name": "write", "input": {"path": "f", "content": text()}}
    messages = [{"role": "assistant", "content": [call]}]
    session.sync(messages)
    assert sources(session.observe("cat f", text())) == {"c1"}
    call["input"] = {"path": "f", "content": "[48,000 characters]"}
    session.sync(messages)
    assert session.observe("cat f", text()).text == text()


# ------------------------------------------------------------ markers


@each_shape
@pytest.mark.parametrize("what", ["pruned", "cleared"])
def test_a_marker_whose_source_went_is_retired(session: Session, shape: str, what: str) -> None:
    turns = [read(session, "c1"), ("c2", "cat f", session.observe("cat f", text(of="f"), call_id="c2").text)]
    session.sync(message_list(shape, turns))
    left = turns[1:] if what == "pruned" else [("c1", "cat f", "[cleared]"), turns[1]]
    rewrites = session.sync(message_list(shape, left))
    assert list(rewrites) == ["c2"]
    assert "GONE" in rewrites["c2"]
    assert "no longer above" in rewrites["c2"]
    assert session.observe("cat f", text(of="f")).text == text(of="f")


@with_ids
def test_a_rewritten_result_keeps_the_harnesss_own_words_and_is_accepted(session: Session, shape: str) -> None:
    turns = [read(session, "c1"), ("c2", "cat f", session.observe("cat f", text(of="f"), call_id="c2").text)]
    wrapped = ("c2", "cat f", f"<out>\n{turns[1][2]}</out>")
    session.sync(message_list(shape, [turns[0], wrapped]))
    left = [wrapped]
    rewrites = session.sync(message_list(shape, left))
    assert rewrites["c2"].startswith("OBSERVATION:\n<out>\n[GONE" if shape == "blocks" else "<out>\n[GONE")
    assert rewrites["c2"].endswith("\n</out>")
    log = kinds(session)
    left = [("c2", "cat f", rewrites["c2"].removeprefix("OBSERVATION:\n"))]
    assert session.sync(message_list(shape, left)) == {}
    assert kinds(session) == log


@with_ids
def test_a_rewrite_is_asked_for_until_the_list_has_it(session: Session, shape: str) -> None:
    reply = session.observe("sed -n '1,40p' f", text(1, 40), call_id="c1")
    second = session.observe("cat f", text(), call_id="c2")
    session.sync(message_list(shape, [("c1", "sed", reply.text), ("c2", "cat f", second.text)]))
    left: Turns = [("c2", "cat f", second.text)]
    rewrites = session.sync(message_list(shape, left))
    log = kinds(session)
    assert session.sync(message_list(shape, left)) == rewrites != {}
    assert kinds(session) == log
    assert session.view.covers("/w/f", 41, 60)


def test_a_marker_in_a_result_that_is_shown_as_json_is_retired_inside_it(session: Session) -> None:
    read(session, "c1")
    reply = session.observe("cat f", text(of="f"), call_id="c2")
    shown = json.dumps({"returncode": 0, "output": reply.text, "note": "naïve"})
    session.sync(message_list("openai", [("c1", "cat f", text(of="f")), ("c2", "cat f", shown)]))
    rewrites = session.sync([{"role": "tool", "tool_call_id": "c2", "content": shown}])
    decoded = json.loads(rewrites["c2"])
    assert decoded["output"].startswith("[GONE")
    assert (decoded["returncode"], decoded["note"]) == (0, "naïve")


def test_a_marker_that_the_harness_cut_through_is_retired_in_the_first_list_that_has_it() -> None:
    session = Session("/w", policy=Policy(clip=Head(1_090), any_output=True, min_worth=0))
    read(session, "c1", output=text(1, 15))
    call_id, command, shown = read(session, "c2", "g", text(1, 19, of="other") + text(1, 15))
    assert shown[:1_090].splitlines()[-1].startswith("[LEFT_OUT ")
    (amended,) = session.sync(message_list("openai", [(call_id, command, shown[:1_090])])).values()
    assert amended.splitlines()[-1].startswith("[GONE ")


def test_a_marker_in_a_clipped_result_is_retired_in_json_of_several_texts(session: Session) -> None:
    read(session, "c1")
    reply = session.observe("cat g f", text(of="g") + text(of="f"), call_id="c2")
    shown = json.dumps({"output": reply.text.split("\n", 30)[-1], "stderr": "warning"})
    session.sync(message_list("openai", [("c1", "cat f", text(of="f")), ("c2", "cat f", shown)]))
    rewrites = session.sync([{"role": "tool", "tool_call_id": "c2", "content": shown}])
    decoded = json.loads(rewrites["c2"])
    assert "\n[GONE" in decoded["output"]
    assert "no longer above" in decoded["output"]
    assert decoded["stderr"] == "warning"
    assert session.sync([{"role": "tool", "tool_call_id": "c2", "content": rewrites["c2"]}]) == {}


@each_shape
def test_a_forgotten_reply_comes_back_without_its_markers(session: Session, shape: str) -> None:
    turns = [read(session, "c1"), ("c2", "cat f", session.observe("cat f", text(of="f"), call_id="c2").text)]
    session.sync(message_list(shape, turns))
    session.sync(message_list(shape, []))  # rewound; then the rewind is undone, and after that the first read pruned
    rewrites = session.sync(message_list(shape, turns))
    assert list(rewrites) == ["c2"]
    assert "[GONE" in rewrites["c2"]
    repaired = [turns[0], ("c2", "cat f", rewrites["c2"].removeprefix("OBSERVATION:\n"))]
    assert session.sync(message_list(shape, repaired)) == {}
    assert session.sync(message_list(shape, repaired[1:])) == {}
    assert session.observe("cat f", text(of="f")).text == text(of="f")


@each_shape
def test_a_marker_is_retired_when_a_second_copy_of_its_source_is_clipped(session: Session, shape: str) -> None:
    first = read(session, "c1")
    shown = session.observe("cat g f", text(of="g") + text(of="f"), call_id="c2").text
    shortened = "".join(shown.splitlines(True)[:30])
    session.sync(message_list(shape, [first, ("c2", "cat g f", shortened)]))
    copies = [("c2", "cat g f", shortened), ("c2", "cat g f", shown)]
    (rewritten,) = session.sync(message_list(shape, copies)).values()
    assert text(of="f").rstrip("\n") in rewritten  # no list has held the marker


@with_ids
def test_a_reply_that_another_process_forgot_comes_back_without_its_markers(tmp_path: Path, shape: str) -> None:
    with Session("/w", session_id="s", store=tmp_path / "log.db") as session:
        turns = [read(session, "c1"), ("c2", "cat f", session.observe("cat f", text(of="f"), call_id="c2").text)]
        session.compacted(keep=[])
    with Session("/w", session_id="s", store=tmp_path / "log.db") as session:
        assert list(session.sync(message_list(shape, turns))) == ["c2"]


def test_a_reply_that_was_merged_into_another_result_comes_without_its_markers(session: Session) -> None:
    turns = [read(session, "c1"), read(session, "c2", "g")]
    shown = session.observe("cat f", text(of="f"), call_id="c3").text
    merged = [(turns[1][0], turns[1][1], turns[1][2] + shown), ("c3", "cat f", "(see above)")]
    rewrites = session.sync(message_list("openai", merged))
    assert rewrites["c2"] == text(of="g") + text(of="f")  # no list has held the reply


def test_a_file_line_of_an_ellipsis_is_content_and_its_loss_retires_markers(session: Session) -> None:
    lines = text(of="f").split("\n")
    lines[10] = "[…]"
    whole = "\n".join(lines)
    session.observe("cat f", whole, call_id="c1")
    shown = session.observe("cat f", whole, call_id="c2").text
    left = "\n".join(lines[:10] + lines[11:])
    rewrites = session.sync(message_list("openai", [("c1", "cat f", left), ("c2", "cat f", shown)]))
    assert list(rewrites) == ["c2"]


def test_a_marker_that_was_made_after_its_source_was_clipped_stays(session: Session) -> None:
    call_id, command, shown = read(session, "c1")
    clipped = (call_id, command, "\n".join(shown.split("\n")[:30]))
    session.sync(message_list("openai", [clipped]))
    reply = session.observe("head -n 25 f", text(1, 25, of="f"), call_id="c2")
    assert sources(reply) == {"c1"}
    assert session.sync(message_list("openai", [clipped, ("c2", "head -n 25 f", reply.text)])) == {}


# ------------------------------------------------------------ restored sections


def compact(session: Session, part: Callable[[Any], Any] = lambda plan: plan) -> tuple[Any, str]:
    plan = part(session.restore_plan())
    return plan, str(session.compacted(restored=plan).restored_id)


def two_files(session: Session) -> None:
    read(session, "c1")
    read(session, "c2", "g")


def test_a_restored_section_is_visible_while_it_stands_in_a_message(session: Session) -> None:
    two_files(session)
    plan, restored_id = compact(session)
    session.sync([{"role": "system", "content": "You code."}, plan.to_message()])
    assert sources(session.observe("cat f", text(of="f"))) == {restored_id}
    session.sync([{"role": "system", "content": "You code."}])
    assert session.observe("cat f", text(of="f")).text == text(of="f")


@pytest.mark.parametrize("how", ["in the message alone", "in the plan too"])
def test_what_a_harness_did_not_restore_of_the_plan_is_not_visible(session: Session, how: str) -> None:
    two_files(session)
    whole = session.restore_plan()
    first = replace(whole, items=whole.items[:1])
    session.compacted(restored=whole if how == "in the message alone" else first)
    session.sync([{"role": "user", "content": f"A summary.\n\n{first.render()}"}])
    restored, missing = (item.path or "" for item in whole.items)
    assert session.view.covers(restored, 1, 60)
    assert not session.view.covers(missing, 1, 1)


def test_a_restored_section_without_its_heading_is_none_since_markers_name_it_by_that(session: Session) -> None:
    two_files(session)
    plan, _ = compact(session)
    session.sync([{"role": "user", "content": plan.render().partition("\n")[2]}])
    assert session.view.deliveries == []


def test_a_rewind_to_a_call_older_than_a_restored_section_keeps_the_section(session: Session) -> None:
    read(session, "c1")
    kept = read(session, "c2", "g")
    plan = session.restore_plan(keep=["c2"])
    session.compacted(keep=["c2"], restored=plan)
    later = read(session, "c3", "h")
    section = ("", "", plan.render())
    session.sync(message_list("openai", [section, kept, later]))
    session.sync(message_list("openai", [section, kept]))
    assert session.view.covers("/w/f", 1, 60)
    assert not session.view.covers("/w/h", 1, 1)


@each_shape
def test_compaction_after_compaction_leaves_no_marker_dangling(session: Session, shape: str) -> None:
    turns: Turns = []
    for n in range(4):
        turns.append(read(session, f"a{n}"))
        turns.append(("b" + str(n), "cat f", session.observe("cat f", text(of="f"), call_id=f"b{n}").text))
        kept = [turn for turn in turns[-1:] if turn[1]]
        plan = session.restore_plan(keep=[call_id for call_id, _, _ in kept])
        done = session.compacted(keep=[call_id for call_id, _, _ in kept], restored=plan)
        turns = [("", "", plan.render())] * bool(plan.items)
        turns += [(call_id, command, done.rewrites.get(call_id, shown)) for call_id, command, shown in kept]
        assert session.sync(message_list(shape, turns)) == {}
        shown = "\n".join(shown for _, _, shown in turns)
        markers = [marker for marker in session.markers_in(shown) if not marker.startswith("[GONE")]
        assert all(plan.heading in marker for marker in markers)
        assert not markers or text(of="f") in shown


def test_a_compaction_in_the_middle_of_a_batch_leaves_only_what_was_kept(session: Session) -> None:
    kept = read(session, "c0", "g")
    with session.batch():
        first = read(session, "c1")
        session.compacted(keep=["c0", "c1"])
        assert session.observe("cat f", text(of="f"), call_id="c2").text == text(of="f")  # c1 is of the same batch
        assert sources(session.observe("cat g", text(of="g"), call_id="c3")) == {"c0"}
        session.sync(message_list("openai", [first]))
        assert session.observe("cat g", text(of="g"), call_id="c4").text == text(of="g")
    assert kept[2] == text(of="g")


# ------------------------------------------------------------ contexts, stores, failures


def test_a_fork_is_synced_with_its_own_messages(session: Session) -> None:
    turns = [read(session, "c1"), read(session, "c2", "g")]
    child = session.fork("helper", inherit=True)
    child.sync(message_list("openai", turns[:1]))
    assert not child.view.covers("/w/g", 1, 1)
    assert session.view.covers("/w/g", 1, 60)


@each_shape
def test_after_a_restart_the_view_is_what_it_was(tmp_path: Path, shape: str) -> None:
    with Session("/w", session_id="s", store=tmp_path / "log.db") as session:
        turns = [read(session, "c1"), read(session, "c2", "g"), read(session, "c3", "h")]
        lines = turns[2][2].split("\n")
        turns[2] = ("c3", "cat h", "\n".join([*lines[:20], "[cut]", *lines[40:]]))
        session.sync(message_list(shape, turns[1:]))
        was = [delivery.event for delivery in session.view.deliveries]
    with Session("/w", session_id="s", store=tmp_path / "log.db") as session:
        assert [delivery.event for delivery in session.view.deliveries] == was
        log = kinds(session)
        assert session.sync(message_list(shape, turns[1:])) == {}
        assert kinds(session) == log


def test_a_process_that_judges_one_call_knows_what_another_forgot(tmp_path: Path) -> None:
    with Session("/w", session_id="s", store=tmp_path / "log.db") as session:
        turns = [read(session, "c1"), read(session, "c2", "g")]
        session.sync(message_list("openai", turns[1:]))

    def answer(path: str) -> Reply:
        log = Log(lambda: open_store(tmp_path / "log.db"), "s", "main", lambda: 0.0)
        with closing(log):
            call = command_call("c3", f"cat {path}", "/w", text(of=path), read_command(f"cat {path}", "/w"))
            return Reader(log, session.reader.rules, one_call=True).judge(call, confirm=Confirm.ALL).reply

    assert answer("f").text == text(of="f")
    assert omits(answer("g"))


def test_any_output_finds_nothing_in_a_forgotten_call() -> None:
    session = Session("/w", policy=Policy(any_output=True))
    session.observe("make", text(), call_id="c1")
    assert omits(session.observe("make again", text(), call_id="c2"))
    session.sync([])
    assert session.observe("make once more", text()).outcome is Outcome.FULL


@pytest.mark.parametrize(
    "messages",
    [
        [None, 7, "text", b"bytes", {}, {"role": None}, {"role": "tool", "content": {"a": object()}}],
        [{"role": "tool", "tool_call_id": ["c1"], "content": [[]]}, {"role": "user", "content": [None, {"type": 3}]}],
        [{"role": "assistant", "tool_calls": [None, {"id": 4}, {"function": {"arguments": "{"}}]}],
        "not a list",
        {"role": "user"},
    ],
    ids=range(5),
)
def test_whatever_is_no_message_list_leaves_nothing_and_raises_nothing(session: Session, messages: Any) -> None:
    read(session, "c1")
    for _ in range(2):
        assert session.sync(messages) == {}
    assert session.view.deliveries == []


def test_when_a_list_cannot_be_read_everything_counts_as_gone(session: Session) -> None:
    class Broken(dict[str, Any]):
        def get(self, *_: object) -> Any:
            raise RuntimeError("no such luck")

    turn = read(session, "c1")
    assert session.sync([*message_list("openai", [turn]), Broken(role="user")]) == {}
    assert session.view.deliveries == []
    assert session.stats()["internal_error"] == 1
    read(session, "c2")
    session.sync(message_list("openai", [("c2", "cat f", text(of="f"))]))
    assert session.view.covers("/w/f", 1, 60)


# ------------------------------------------------------------ the law


def lines_credited(session: Session) -> set[str]:
    """Every line that the view believes visible."""
    view = session.view
    return {
        line for key in view.known_keys() for visible in view.key(key).visible_spans() for line in view.bodies(visible)
    }


def mangled(messages: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    """What harnesses do to lists, at random, and more."""
    out: list[dict[str, Any]] = []
    for message in messages:
        what = rng.choice(("keep",) * 5 + ("drop", "twice", "clip", "edit", "merge", "shuffle lines"))
        message = json.loads(json.dumps(message))
        if what == "clip":
            replace_text(message, "\n", "\n" if rng.random() < 0.7 else "\r\n")
        if what == "edit":
            replace_text(message, f"number {rng.randint(1, 60)} ", "number ? ")
        if what == "shuffle lines" and isinstance(message.get("content"), str):
            lines = message["content"].split("\n")
            message["content"] = "\n".join(lines[rng.randrange(len(lines)) :] + lines[: rng.randrange(len(lines))])
        if what == "merge" and all(isinstance(each.get("content"), str) for each in (message, *(out[-1:] or [{}]))):
            out[-1]["content"] += "\n" + message["content"]
            continue
        out += {"drop": [], "twice": [message, message]}.get(what, [message])
    if rng.random() < 0.2:
        rng.shuffle(out)
    return out


@given(st.integers(0, 10_000), st.sampled_from(SHAPES))
def test_no_line_counts_as_visible_that_does_not_stand_whole_in_the_list(seed: int, shape: str) -> None:
    rng = random.Random(seed)
    session = Session("/w")
    turns: Turns = []
    for n in range(rng.randint(1, 6)):
        path, first = rng.choice("fgh"), rng.choice((1, 1, 20))
        if rng.random() < 0.3:
            command = f"cat > {path} <<'EOF'\n{text(first, 60, of=path)}EOF"
            turns.append((f"c{n}", command, session.observe(command, "", call_id=f"c{n}").text))
        else:
            reply = session.observe(f"tail -n +{first} {path}", text(first, 60, of=path), call_id=f"c{n}")
            turns.append((f"c{n}", f"tail -n +{first} {path}", reply.text))
        messages = message_list(shape, turns)
        for _ in range(rng.randint(0, 2)):  # more than one list after another
            messages = mangled(messages, rng)
            session.sync(messages)
            visible_lines = set("\n".join(strings(messages)).split("\n"))
            assert lines_credited(session) <= visible_lines
            turns = [turn for turn in turns if session.view.is_visible(turn[0])]


@given(st.integers(0, 10_000), st.sampled_from(SHAPES_WITH_IDS))
def test_no_marker_is_left_in_the_list_for_which_no_visible_source_stands(seed: int, shape: str) -> None:
    rng = random.Random(seed)
    session = Session("/w")
    turns: Turns = []
    earlier: list[Turns] = []
    for n in range(rng.randint(2, 12)):
        path, first = rng.choice("fg"), rng.choice((1, 1, 20))
        reply = session.observe(f"tail -n +{first} {path}", text(first, 60, of=path), call_id=f"c{n}")
        turns = [*turns, (f"c{n}", f"tail -n +{first} {path}", reply.text)]
        earlier.append(turns)
        what = rng.choice(("keep", "keep", "drop", "cut", "undo"))
        at = rng.randrange(len(turns))
        if what == "drop":
            turns = turns[:at] + turns[at + 1 :]
        elif what == "cut":
            lines = turns[at][2].splitlines(True)
            shortened = "".join(lines[rng.randrange(len(lines) + 1) :])
            turns = [*turns[:at], (*turns[at][:2], shortened), *turns[at + 1 :]]
        elif what == "undo":
            turns = rng.choice(earlier)
        elif rng.random() < 0.3:
            continue  # not every step is synced
        rewrites = session.sync(message_list(shape, turns))
        told = [(id, command, rewrites.get(id, shown)) for id, command, shown in turns]
        turns = [(id, command, shown.removeprefix(WORDS_IN_FRONT)) for id, command, shown in told]
        left = [m for turn in turns for m in session.markers_in(turn[2]) if not m.startswith("[GONE")]
        promised = [
            marker.wording
            for delivery in session.view.deliveries
            for marker in delivery.event.markers
            if marker.sources and all(map(session.view.is_visible, marker.sources))
        ]
        assert set(left) <= set(promised), what


def test_a_line_of_a_file_that_looks_like_a_marker_is_left_alone(session: Session) -> None:
    read(session, "c1")
    marked = session.observe("cat f", text(of="f"), call_id="c2").text
    assert session.markers_in(marked)
    _, command, shown = read(session, "c3", "g", marked + text(of="g"))
    shortened = "".join(shown.splitlines(True)[:-5])
    assert session.sync(message_list("openai", [("c3", command, shortened)])) == {}


def test_a_blank_line_at_the_end_that_was_edited_is_not_written_back(session: Session) -> None:
    read(session, "c1", output=text(1, 20))
    output = text(1, 20) + "one line more of it\n\n"
    shown = session.observe("cat f; echo one line more of it; echo", output, call_id="c2").text
    assert session.markers_in(shown)
    session.compacted(keep=["c2"])
    (event,) = [delivery.event for delivery in session.view.deliveries]
    edited = event.text.removesuffix("\n") + " (redacted)\n"
    assert session.sync(message_list("openai", [("c2", "cat f", edited)])) == {}


def strings(thing: Any) -> list[str]:
    """Every string inside it, arguments that are JSON decoded."""
    if isinstance(thing, str):
        return [*strings(json.loads(thing)), thing] if thing.startswith('{"command"') else [thing]
    inner = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list) else ()
    return [string for item in inner for string in strings(item)]
