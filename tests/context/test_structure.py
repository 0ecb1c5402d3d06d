from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache.core.messages.structure import cut_points, repair
from tests.helpers.chats import APIS, Raw, call_message, is_sendable, result_messages, scripted

both_shapes = pytest.mark.parametrize("shape", APIS)

# ------------------------------------------------------------ cut points

POINTS = {
    "an_empty_list": ("", [0]),
    "one_message": ("u", [0, 1]),
    "messages_alone": ("u u u", [0, 1, 2, 3]),
    "a_call_and_its_result": ("c1 r1", [0, 2]),
    "a_pair_between_messages": ("u c1 r1 u", [0, 1, 3, 4]),
    "a_batch": ("c1,2,3 r1 r2 r3", [0, 4]),
    "a_batch_written_as_one_message_for_each_call": ("c1 c2 r1 r2", [0, 4]),
    "two_batches": ("c1,2 r1 r2 c3,4 r3 r4", [0, 3, 6]),
    "batches_and_messages": ("u c1,2 r1 r2 u c3 r3 u", [0, 1, 4, 5, 7, 8]),
    "units_one_after_another": ("u u c1 r1 u", [0, 1, 2, 4, 5]),
    "a_result_behind_a_message": ("c1,2 u r1 r2", [0, 4]),
    "results_around_a_message": ("u c1,2 r1 u r2 u c3 r3", [0, 1, 5, 6, 8]),
    "a_result_behind_another_unit": ("u c1 u c2 r2 u r1 u", [0, 1, 7, 8]),
    "results_in_another_order": ("u c1,2 r2 r1 u", [0, 1, 4, 5]),
    "errors_are_results": ("u c1,2 e1 r2 u", [0, 1, 4, 5]),
    "a_call_id_that_is_used_again": ("c0 r0 c0 r0 u c0 r0", [0, 2, 4, 5, 7]),
    "a_thinking_loop": ("u t1 r1 c2 r2 c3 r3 u", [0, 1, 7, 8]),
    "a_thinking_loop_with_a_batch": ("u t1,2 r1 r2 c3 r3 u", [0, 1, 6, 7]),
    "a_thinking_loop_of_one_pair": ("u t1 r1", [0, 1, 3]),
    "a_message_ends_a_thinking_loop": ("u t1 r1 c2 r2 u t3 r3 u", [0, 1, 5, 6, 8, 9]),
    "a_message_between_results_and_call_ends_it_too": ("t1 r1 u c2 r2", [0, 2, 3, 5]),
    "words_of_the_model_end_a_thinking_loop": ("u t1 r1 s u c2 r2", [0, 1, 3, 4, 5, 7]),
    "thinking_anew_begins_a_new_loop": ("u t1 r1 t2 r2 c3 r3", [0, 1, 3, 7]),
    "a_loop_without_thinking_is_none": ("c1 r1 c2 r2", [0, 2, 4]),
    "calls_that_wait_at_the_end": ("u c1 r1 c2,3", [0, 1, 3]),
    "a_batch_that_waits_for_one_more": ("u c1 r1 c2,3 r2", [0, 1, 3]),
    "a_loop_whose_last_call_waits": ("u t1 r1 c2", [0, 1]),
    "a_call_that_nothing_answered_any_more": ("c1 u c2 r2", [0, 1, 2, 4]),
}


@both_shapes
@pytest.mark.parametrize(("script", "points"), POINTS.values(), ids=POINTS)
def test_cut_points_of(script: str, points: list[int], shape: str) -> None:
    assert cut_points(scripted(shape, script)) == points


def test_results_of_a_batch_in_one_message() -> None:
    call, *results = scripted("anthropic", "c1,2 r1 r2")
    merged: Raw = {"role": "user", "content": [block for result in results for block in result["content"]]}
    assert cut_points([call, merged]) == [0, 2]


def test_items_of_the_responses_api_are_one_answer() -> None:
    items: list[Raw] = [
        {"role": "user", "content": "go"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "1", "name": "bash", "arguments": "{}"},
        {"type": "function_call", "call_id": "2", "name": "bash", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "a"},
        {"type": "function_call_output", "call_id": "2", "output": "b"},
    ]
    assert cut_points(items) == [0, 1, 6]
    assert repair(items[:5]) == items[:1]


def test_the_older_function_call_without_ids() -> None:
    call: Raw = {"role": "assistant", "content": None, "function_call": {"name": "ls", "arguments": "{}"}}
    result: Raw = {"role": "function", "name": "ls", "content": "a"}
    assert cut_points([call, result, call, result]) == [0, 2, 4]
    assert repair([call, result, call, {"role": "user", "content": "well?"}])[2:] == [
        {"role": "user", "content": "well?"}
    ]


def test_a_chat_without_calls_may_be_cut_anywhere() -> None:
    assert cut_points(scripted("openai", "u s u s u")) == [0, 1, 2, 3, 4, 5]


# ------------------------------------------------------------ repair

# Words and messages that are left are written as they were at their place in the list.
REPAIRS = {
    "nothing": ("", ""),
    "no_calls": ("u s u", "u s u"),
    "pairs": ("u c1 r1 c2,3 r2 r3", "u c1 r1 c2,3 r2 r3"),
    "a_late_second_result": ("u c1 e1 u r1 s", "u c1 e1 u - s"),
    "a_second_result_at_once": ("c1 r1 r1", "c1 r1 -"),
    "a_result_for_each_use_of_an_id": ("c0 r0 c0 r0 r0", "c0 r0 c0 r0 -"),
    "a_call_without_result": ("u c1 u", "u - u"),
    "a_call_without_result_at_the_end": ("u c1", "u -"),
    "a_result_without_call": ("u r1 u", "u - u"),
    "a_result_before_its_call": ("r1 c1 u", "- - u"),
    "calls_and_results_mixed": ("c1 r1 c2 u r3", "c1 r1 - u -"),
    "all_kinds_of_results": ("c1,2,3 r1 e2 r3", "c1,2,3 r1 e2 r3"),
    "a_batch_without_its_first_result": ("u c1,2,3 r2 r3 u", "u - - - u"),
    "a_batch_without_its_middle_result": ("u c1,2,3 r1 r3 u", "u - - - u"),
    "a_batch_without_any_result": ("u c1,2 u", "u - u"),
    "a_batch_in_several_messages": ("c1 c2 c3 r1 r3", "- - - - -"),
    "a_batch_beside_another_one": ("u c1,2 r2 u c3,4 r3 r4", "u - - u c3,4 r3 r4"),
    "two_broken_batches": ("u c1,2 r2 c3,4 r3 c5 r5", "u - - - - c5 r5"),
    "a_call_whose_id_is_used_again": ("c0 u c0 r0", "- u c0 r0"),
    "a_thinking_loop_without_its_first_result": ("u t1 c2 r2 u", "u - - - u"),
    "a_thinking_loop_without_a_middle_result": ("u t1 r1 c2,3 r2 c4 r4 u", "u t1 r1 - - - - u"),
    "a_thinking_loop_without_its_last_result": ("u t1 r1 c2 u", "u t1 r1 - u"),
    "only_the_loop_that_is_broken": ("t1 r1 u t2 c3 r3 u t4 r4", "t1 r1 u - - - u t4 r4"),
    "a_loop_that_thinks_anew": ("t1 r1 t2 c3 r2 t4 r4", "t1 r1 - - - t4 r4"),
    "no_loop_without_thinking": ("c1 c2 r2 c3 r3", "- - - c3 r3"),
}


@both_shapes
@pytest.mark.parametrize(("script", "left"), REPAIRS.values(), ids=REPAIRS)
def test_repairing(script: str, left: str, shape: str) -> None:
    messages = scripted(shape, script)
    kept = [message for message, word in zip(messages, left.split(), strict=True) if word != "-"]
    assert repair(messages) == kept


def test_an_answer_without_its_calls_keeps_its_words_and_loses_its_thinking() -> None:
    answer: Raw = {**scripted("openai", "t1")[0], "content": "I'll look.", "thinking_blocks": [{"type": "thinking"}]}
    assert repair([answer]) == [{"role": "assistant", "content": "I'll look."}]
    (blocks,) = scripted("anthropic", "t1")
    blocks = {**blocks, "content": [*blocks["content"], {"type": "text", "text": "I'll look."}]}
    assert repair([blocks]) == [{"role": "assistant", "content": [{"type": "text", "text": "I'll look."}]}]


def test_what_the_user_says_beside_a_result_stays() -> None:
    call, second = scripted("anthropic", "c1 r2")
    words, image = {"type": "text", "text": "and mind the tax"}, {"type": "image", "source": {}}
    first = scripted("anthropic", "r1")[0]["content"]
    spoken: Raw = {"role": "user", "content": [*first, *second["content"], words, image]}
    assert repair([call, spoken]) == [call, {"role": "user", "content": [*first, words, image]}]
    assert repair([spoken]) == [{"role": "user", "content": [words, image]}]
    assert repair([{"role": "user", "content": [*first, image]}]) == [{"role": "user", "content": [image]}]


def test_a_call_beside_a_result_of_nothing_stays() -> None:
    """No API writes such a message; a harness may have merged two."""
    stray, (call, result) = scripted("anthropic", "r9")[0], scripted("anthropic", "c1 r1")
    merged = {**call, "content": [*stray["content"], *call["content"]]}
    assert repair([merged, result]) == [call, result]


def test_a_result_of_nothing_beside_a_second_one_for_its_call_stays() -> None:
    call, (result,) = call_message("anthropic", [("1", "bash", {})]), result_messages("anthropic", [("1", "", False)])
    twice = {"role": "user", "content": [*result["content"], *result["content"]]}
    assert repair([call, twice]) == [call, result]


def test_a_result_goes_with_its_images() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
    block = {"type": "tool_result", "tool_use_id": "1", "content": [image, {"type": "text", "text": "seen"}]}
    assert repair([{"role": "user", "content": [block]}]) == []


# ------------------------------------------------------------ laws

WORDS = st.sampled_from(["u", "s", "c1", "c1,2", "c3", "t1", "t2,3", "t4", "r1", "r2", "r3", "r4", "e1"])
SCRIPTS = st.lists(WORDS, max_size=14).map(" ".join)
shapes = st.sampled_from(APIS)


@st.composite
def whole_scripts(draw: st.DrawFn, thinking: bool = True) -> str:
    """Scripts of lists that were never cut, ids used again included."""
    words: list[str] = []
    for unit in draw(st.lists(st.sampled_from(["u", "s", "c", "c", "t" if thinking else "c"]), max_size=8)):
        if unit in "us":
            words.append(unit)
            continue
        ids = draw(st.lists(st.sampled_from("123"), min_size=1, max_size=3, unique=True))
        words += [unit + ",".join(ids), *(f"r{call_id}" for call_id in draw(st.permutations(ids)))]
    return " ".join(words)


@given(shapes, whole_scripts())
def test_a_list_that_was_never_cut_is_left_alone(shape: str, script: str) -> None:
    messages = scripted(shape, script)
    assert is_sendable(messages)
    assert repair(messages) is messages
    assert {0, len(messages)} <= set(cut_points(messages))


@given(shapes, whole_scripts(), st.data())
def test_deleting_between_two_cut_points_keeps_a_list_well_formed(shape: str, script: str, data: st.DataObject) -> None:
    messages = scripted(shape, script)
    points = st.sampled_from(cut_points(messages))
    start, end = sorted((data.draw(points), data.draw(points)))
    left = messages[:start] + messages[end:]
    assert is_sendable(left)
    assert repair(left) is left
    between = messages[start:end]
    assert repair(between) is between


@given(shapes, whole_scripts(), st.data())
def test_inserting_at_a_cut_point_keeps_all_other_units_whole(shape: str, script: str, data: st.DataObject) -> None:
    messages = scripted(shape, script)
    points = cut_points(messages)
    at = data.draw(st.sampled_from(points))
    longer = messages[:at] + scripted(shape, "u") + messages[at:]
    assert repair(longer) is longer
    assert cut_points(longer) == [p for p in points if p <= at] + [p + 1 for p in points if p >= at]


@given(shapes, whole_scripts(thinking=False))
def test_without_thinking_any_cut_that_leaves_two_sendable_halves_is_allowed(shape: str, script: str) -> None:
    messages = scripted(shape, script)
    inside_an_answer = {
        at
        for at in range(1, len(messages))
        if {messages[at - 1]["role"], messages[at]["role"]} <= {"assistant", "model"}
    }
    both = {at for at in range(len(messages) + 1) if is_sendable(messages[:at]) and is_sendable(messages[at:])}
    assert set(cut_points(messages)) == both - inside_an_answer


@given(shapes, whole_scripts())
def test_no_cut_parts_a_call_from_a_result_still_to_come(shape: str, script: str) -> None:
    messages = scripted(shape, script)
    for length in range(len(messages)):
        for at in cut_points(messages[:length]):
            assert is_sendable(messages[at:])


@given(shapes, SCRIPTS)
def test_whatever_is_repaired_can_be_sent(shape: str, script: str) -> None:
    messages = scripted(shape, script)
    before = copy.deepcopy(messages)
    fixed = repair(messages)
    assert messages == before
    assert is_sendable(fixed)
    assert repair(fixed) is fixed


@given(shapes, SCRIPTS)
def test_repairing_only_drops(shape: str, script: str) -> None:
    messages = scripted(shape, script)
    fixed = repair(messages)
    rest = iter(messages)
    assert all(any(message is other for other in rest) for message in fixed), "the very same, in the same order"
    spoken = [message for message, word in zip(messages, script.split(), strict=True) if word in "us"]
    assert [message for message in fixed if message in spoken] == spoken


JSON: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(["", "x", "tool_use", "tool_result", "1"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["type", "content", "id", "tool_use_id", "text", "input", "role", "tool_calls", "function"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "function", "system", "", None, 3])},
    optional={
        key: JSON for key in ("content", "tool_calls", "tool_call_id", "function_call", "type", "thinking_blocks")
    },
)


@given(st.lists(MESSAGES, max_size=5))
def test_messages_of_no_known_shape_raise_nothing(messages: list[Any]) -> None:
    assert cut_points(messages)[0] == 0
    assert len(repair(messages)) <= len(messages)
