from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest

from readcache.core.messages.editing import (
    with_arguments,
    with_result_text,
    with_results,
    with_texts,
    without_cleared,
    without_images,
)
from readcache.core.messages.messages import Kind, normalise_one

IMAGE = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
BARE_IMAGE = {"image": {"format": "png", "source": {"bytes": b"png"}}}
INLINE_IMAGE = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
RESULTS: dict[str, dict[str, Any]] = {
    "OpenAI": {"role": "tool", "tool_call_id": "c1", "content": "old"},
    "OpenAI, parts": {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "old"}]},
    "Anthropic": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "old"}]},
    "Anthropic, nothing": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]},
    "Anthropic, blocks": {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "c1",
                "content": [{"type": "text", "text": "old"}, IMAGE, {"type": "text", "text": "more"}],
            },
            {"type": "tool_result", "tool_use_id": "c2", "content": "other"},
        ],
    },
    "Anthropic, image": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [IMAGE]}]},
    "Responses": {"type": "function_call_output", "call_id": "c1", "output": "old"},
    "Converse": {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "old"}]}}]},
    "Converse, image": {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "c1", "content": [BARE_IMAGE], "status": "success", "type": "server"}},
            {"toolResult": {"toolUseId": "c2", "content": [{"text": "other"}]}},
            {"cachePoint": {"type": "default"}},
        ],
    },
    "Gemini": {
        "role": "user",
        "parts": [
            {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "old"}, "parts": [INLINE_IMAGE]}},
            {"functionResponse": {"id": "c2", "name": "f", "response": {"error": "other"}}},
        ],
    },
    "Gemini, nothing": {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "f"}}]},
    "google-genai": {"parts": [{"function_response": {"id": "c1", "name": "f", "response": {"result": "old"}}}]},
}
CALLS: dict[str, dict[str, Any]] = {
    "OpenAI": {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c0", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": "old"}'}},
        ],
    },
    "Anthropic": {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "so"},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": "old"}},
        ],
    },
    "Responses": {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": "old"}'},
    "Converse": {
        "role": "assistant",
        "content": [{"toolUse": {"toolUseId": "c1", "name": "f", "input": {"a": "old"}}}],
    },
    "Gemini": {
        "role": "model",
        "parts": [{"functionCall": {"id": "c1", "name": "f", "args": {"a": "old"}}, "thoughtSignature": "c2ln"}],
    },
}


def types(message: Mapping[str, Any]) -> Any:
    """The shape of a message without its texts."""
    if isinstance(message, Mapping):
        return {key: types(value) for key, value in message.items()}
    return [types(each) for each in message] if isinstance(message, list) else type(message)


@pytest.mark.parametrize("message", RESULTS.values(), ids=RESULTS)
def test_a_result_gets_its_new_text_in_its_own_shape(message: dict[str, Any]) -> None:
    before = copy.deepcopy(message)
    after = with_result_text(message, "c1", "new")
    assert message == before
    old, new = normalise_one(message), normalise_one(after)
    assert [p.text for p in new.parts if p.call_id == "c1" and p.kind is Kind.RESULT] == ["new"]
    assert [p for p in new.parts if p.call_id != "c1"] == [p for p in old.parts if p.call_id != "c1"]
    assert [p.kind for p in new.parts] == [p.kind for p in old.parts]


SHAPES = ["OpenAI", "OpenAI, parts", "Anthropic", "Responses", "Converse", "Gemini", "google-genai"]


@pytest.mark.parametrize("name", SHAPES)
def test_a_string_stays_a_string_and_a_list_a_list(name: str) -> None:
    assert types(with_result_text(RESULTS[name], "c1", "new")) == types(RESULTS[name])


@pytest.mark.parametrize("message", CALLS.values(), ids=CALLS)
def test_a_call_gets_its_new_arguments_in_its_own_shape(message: dict[str, Any]) -> None:
    before = copy.deepcopy(message)
    after = with_arguments(message, "c1", {"a": "néw\n"})
    assert message == before
    assert types(after) == types(message)
    given = {p.call_id: p.arguments for p in normalise_one(after).parts if p.kind is Kind.CALL}
    assert given["c1"] == {"a": "néw\n"}
    assert given.get("c0", {}) == {}


def test_the_older_function_call_is_known_by_having_no_id() -> None:
    message = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a": "old"}'}}
    after = with_arguments(message, None, {"a": "new"})
    assert json.loads(after["function_call"]["arguments"]) == {"a": "new"}
    result = {"role": "function", "name": "f", "content": "old"}
    assert with_result_text(result, None, "new") == {"role": "function", "name": "f", "content": "new"}


@pytest.mark.parametrize("message", [*RESULTS.values(), *CALLS.values(), {"role": "user", "content": "c1"}])
def test_a_message_without_that_call_is_the_same_object(message: dict[str, Any]) -> None:
    assert with_result_text(message, "c9", "new") is message
    assert with_arguments(message, "c9", {}) is message


def test_gemini_may_leave_ids_out_and_calls_made_at_once_are_known_by_their_order() -> None:
    made = [{"functionCall": {"name": "f", "args": {"a": text}}} for text in ("one", "two", "two")]
    message = {"role": "model", "parts": made}
    after = with_arguments(message, None, {"a": "new"}, nth=1)
    assert [part["functionCall"]["args"]["a"] for part in after["parts"]] == ["one", "new", "two"]
    given = [{"functionResponse": {"name": "f", "response": {"output": text}}} for text in ("one", "two", "two")]
    message = {"role": "user", "parts": given}
    parts = normalise_one(message).parts
    assert [part.nth for part in parts] == [0, 1, 2]
    after = with_result_text(message, None, "new", nth=2)
    assert [part["functionResponse"]["response"]["output"] for part in after["parts"]] == ["one", "two", "new"]


@pytest.mark.parametrize("response", [{"stdout": "old\n", "code": 0}, {"lines": ["old"]}, {"a": "old", "b": "more"}])
def test_a_response_with_more_than_a_text_is_read_as_json_and_written_as_it_was(response: dict[str, Any]) -> None:
    message = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": response}}]}
    (part,) = normalise_one(message).parts
    assert json.loads(part.text) == response
    after = with_result_text(message, None, part.text.replace("old", "new"))
    assert after["parts"][0]["functionResponse"]["response"] == json.loads(part.text.replace("old", "new"))
    assert with_result_text(message, None, "a note")["parts"][0]["functionResponse"]["response"] == {"output": "a note"}


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN"])
def test_arguments_with_a_number_that_json_does_not_have_stay_as_they_are(number: str) -> None:
    given = f'{{"a": "old", "b": {number}}}'
    message = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": given}}
    assert with_arguments(message, None, {"a": "new", "b": json.loads(number)}) == message


def test_what_is_said_is_changed_and_nothing_else() -> None:
    said = {"role": "user", "content": [{"type": "text", "text": "old"}, IMAGE]}
    assert with_texts(said, str.upper) == {"role": "user", "content": [{"type": "text", "text": "OLD"}, IMAGE]}
    bare = {"role": "user", "content": [{"text": "old"}, BARE_IMAGE, {"cachePoint": {"type": "default"}}]}
    assert with_texts(bare, str.upper) == {"role": "user", "content": [{"text": "OLD"}, *bare["content"][1:]]}
    thinks = {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "so", "thoughtSignature": "c2ln"}]}
    assert with_texts(thinks, str.upper)["parts"] == [thinks["parts"][0], {"text": "SO", "thoughtSignature": "c2ln"}]
    assert with_texts({"role": "user", "content": "old"}, str.upper) == {"role": "user", "content": "OLD"}
    for message in RESULTS.values():
        assert with_texts(message, str.upper) is message


def test_images_give_way_to_a_text_wherever_they_are() -> None:
    note = {"type": "text", "text": "gone"}
    assert without_images({"role": "user", "content": [IMAGE]}, "gone") == {"role": "user", "content": [note]}
    inside = without_images(RESULTS["Anthropic, image"], "gone")
    assert inside["content"][0]["content"] == [note]
    for name, blocks in (("Converse, image", "content"), ("Gemini", "parts")):
        (block, *_) = without_images(RESULTS[name], "gone")[blocks]
        assert next(iter(block.values()))[blocks] == [{"text": "gone"}]
    item = {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_image", "image_url": "x"}]}
    assert without_images(item, "gone")["output"] == [{"type": "input_text", "text": "gone"}]
    assert without_images(RESULTS["OpenAI, parts"], "gone") is RESULTS["OpenAI, parts"]


def test_two_results_of_one_id_in_a_message_keep_their_own_texts() -> None:
    results = [{"type": "tool_result", "tool_use_id": "c0", "content": text} for text in ("one", "two")]
    message = {"role": "user", "content": results}
    (after,) = with_results([message], {(0, "c0", "two"): "new"})
    assert [block["content"] for block in after["content"]] == ["one", "new"]
    (cleared,) = without_cleared([message], 1)
    assert [block["content"] for block in cleared["content"]] == ["", "two"]


def test_equal_results_without_an_id_are_cleared_one_by_one() -> None:
    results = [{"functionResponse": {"name": "bash", "response": {"output": "same"}}} for _ in range(2)]
    (cleared,) = without_cleared([{"role": "user", "parts": results}], 1)
    assert [part["functionResponse"]["response"]["output"] for part in cleared["parts"]] == ["", "same"]
