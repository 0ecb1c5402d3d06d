from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from readcache.core.messages.editing import with_arguments, with_result_text, with_texts, without_images
from readcache.core.messages.messages import Kind, Message, Part, normalise, normalise_one

HEREDOC = "cat > f.py <<'EOF'\nprint(\"a\\n\")\n\tx = 1\nEOF\n"


def only(message: Mapping[str, Any]) -> Message:
    (found,) = normalise([message])
    return found


def call(call_id: str | None = "c1", name: str = "bash", **arguments: object) -> Part:
    return Part(Kind.CALL, "\n".join(map(str, arguments.values())), call_id, name, arguments)


# ------------------------------------------------------------ OpenAI chat


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
def test_a_string_is_one_text(role: str) -> None:
    assert only({"role": role, "content": "hello"}) == Message(role, (Part(Kind.TEXT, "hello"),))


def test_content_may_be_a_list_of_parts() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    message = only({"role": "user", "content": [{"type": "text", "text": "look"}, image]})
    assert message.parts == (Part(Kind.TEXT, "look"), Part(Kind.IMAGE))
    assert message.text == "look"


def test_calls_have_their_arguments_decoded_so_that_a_heredoc_stands_verbatim() -> None:
    function = {"name": "bash", "arguments": json.dumps({"command": HEREDOC})}
    tool_calls = [{"id": "c1", "type": "function", "function": function}]
    message = only({"role": "assistant", "content": None, "tool_calls": tool_calls})
    assert message.parts == (call(command=HEREDOC),)
    assert HEREDOC in message.parts[0].text


def test_several_arguments_each_begin_on_a_line() -> None:
    function = {
        "name": "write",
        "arguments": '{"path": "/a", "content": "x\\ny\\n", "mode": 420, "url": "u", "none": null}',
    }
    (part,) = only({"role": "assistant", "tool_calls": [{"id": "c1", "function": function}]}).parts
    assert part.text == "/a\nx\ny\n\n420\nu"


def test_arguments_that_are_no_json_object_stay_text() -> None:
    for given_ in ('{"command": "ls', "[1]", "[" * 100_000):
        (part,) = only({"role": "assistant", "tool_calls": [{"id": "c1", "function": {"arguments": given_}}]}).parts
        assert (part.kind, part.text, part.arguments) == (Kind.CALL, given_, None)


def test_a_result_names_its_call() -> None:
    message = only({"role": "tool", "tool_call_id": "c1", "content": "out\n"})
    assert message.parts == (Part(Kind.RESULT, "out\n", "c1"),)


def test_a_result_may_be_a_list_of_parts() -> None:
    message = only({"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a"}, "b"]})
    assert message.parts == (Part(Kind.RESULT, "a\nb", "c1"),)


def test_the_older_function_call_has_no_id() -> None:
    messages = normalise(
        [
            {"role": "assistant", "content": None, "function_call": {"name": "bash", "arguments": '{"command": "ls"}'}},
            {"role": "function", "name": "bash", "content": "f\n"},
        ]
    )
    assert [m.parts for m in messages] == [(call(None, command="ls"),), (Part(Kind.RESULT, "f\n", name="bash"),)]


def test_reasoning_beside_the_content_is_thinking() -> None:
    message = only({"role": "assistant", "content": "so", "reasoning_content": "hm"})
    assert [part.kind for part in message.parts] == [Kind.THINKING, Kind.TEXT]


# ------------------------------------------------------------ Anthropic


def test_blocks_of_an_assistant() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xxx"},
        {"type": "text", "text": "so"},
        {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": HEREDOC}},
    ]
    assert only({"role": "assistant", "content": content}).parts == (
        Part(Kind.THINKING, "hm"),
        Part(Kind.THINKING, ""),
        Part(Kind.TEXT, "so"),
        call(command=HEREDOC),
    )


def test_results_as_strings_and_as_blocks_with_images() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    content = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "a\n"},
        {
            "type": "tool_result",
            "tool_use_id": "c2",
            "is_error": True,
            "content": [{"type": "text", "text": "b"}, image],
        },
        {"type": "tool_result", "tool_use_id": "c3"},
        {"type": "text", "text": "go on"},
    ]
    assert only({"role": "user", "content": content}).parts == (
        Part(Kind.RESULT, "a\n", "c1"),
        Part(Kind.RESULT, "b", "c2", is_error=True),
        Part(Kind.IMAGE, call_id="c2"),
        Part(Kind.RESULT, "", "c3"),
        Part(Kind.TEXT, "go on"),
    )


def test_an_unknown_block_is_other_with_its_strings() -> None:
    block = {"type": "document", "title": "notes", "source": {"type": "text", "data": "skipped", "lines": ["a", 1]}}
    assert only({"role": "user", "content": [block]}).parts == (Part(Kind.OTHER, "notes\na\n1", name="document"),)


class Dumped:
    """An object as the packages of the APIs hand them out."""

    def __init__(self, **fields: object) -> None:
        self.fields = fields

    def model_dump(self, **_: object) -> dict[str, object]:
        return self.fields


def test_the_objects_of_the_apis_own_packages_are_read_too() -> None:
    block = Dumped(type="tool_use", id="c1", name="bash", input={"command": "ls"})
    assert only({"role": "assistant", "content": [block]}).parts == (call(command="ls"),)
    message: Any = Dumped(role="assistant", content="hi")
    assert only(message).text == "hi"


# ------------------------------------------------------------ Bedrock's Converse, Gemini


def test_blocks_that_a_key_names() -> None:
    content = [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
        {"text": "so"},
        {"toolUse": {"toolUseId": "c1", "name": "bash", "input": {"command": HEREDOC}}},
    ]
    assert only({"role": "assistant", "content": content}).parts == (
        Part(Kind.THINKING, "hm"),
        Part(Kind.TEXT, "so"),
        call(command=HEREDOC),
    )
    inner = [{"text": "b"}, {"image": {"format": "png", "source": {"bytes": b"png"}}}, {"json": {"n": [1]}}]
    content = [{"toolResult": {"toolUseId": "c1", "status": "error", "content": inner}}, {"text": "go on"}]
    assert only({"role": "user", "content": content}).parts == (
        Part(Kind.RESULT, "b", "c1", is_error=True),
        Part(Kind.IMAGE, call_id="c1"),
        Part(Kind.OTHER, "1", "c1"),
        Part(Kind.TEXT, "go on"),
    )


def test_gemini_speaks_in_parts() -> None:
    thought, words = {"text": "hm", "thought": True}, {"text": "so", "thoughtSignature": "c2ln"}
    made = {"functionCall": {"id": "c1", "name": "bash", "args": {"command": HEREDOC}}}
    answer = only({"role": "model", "parts": [thought, words, made]})
    assert answer == Message("assistant", (Part(Kind.THINKING, "hm"), Part(Kind.TEXT, "so"), call(command=HEREDOC)))
    picture, sound = ({"inlineData": {"mimeType": kind, "data": "AAAA"}} for kind in ("image/png", "audio/wav"))
    given = {"functionResponse": {"id": "c1", "name": "bash", "response": {"output": "a\n"}, "parts": [picture]}}
    assert only({"parts": [given, sound]}) == Message(
        "user",
        (Part(Kind.RESULT, "a\n", "c1", "bash"), Part(Kind.IMAGE, call_id="c1"), Part(Kind.OTHER, name="inlineData")),
    )
    failed = {"functionResponse": {"name": "bash", "response": {"error": "no"}}}
    for role in ("function", "tool", "user"):  # it stays a message of many parts
        assert only({"role": role, "parts": [failed]}) == Message(
            "user", (Part(Kind.RESULT, "no", None, "bash", is_error=True),)
        )


def test_googles_package_has_names_and_objects_of_its_own() -> None:
    made = Dumped(function_call=Dumped(id="c1", name="bash", args={"command": "ls"}))
    assert only({"role": "model", "parts": [made]}).parts == (call(command="ls"),)
    given = Dumped(function_response={"id": "c1", "name": "bash", "response": {"result": "f"}})
    assert only({"role": "user", "parts": [given]}).parts == (Part(Kind.RESULT, "f", "c1", "bash"),)


# ------------------------------------------------------------ others


def test_items_of_the_responses_api() -> None:
    messages = normalise(
        [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'},
            {"type": "function_call_output", "call_id": "c1", "output": "f\n"},
        ]
    )
    assert [m.role for m in messages] == ["user", "assistant", "assistant", "tool"]
    assert [m.parts for m in messages] == [
        (Part(Kind.TEXT, "go"),),
        (Part(Kind.THINKING, "hm"),),
        (call(command="ls"),),
        (Part(Kind.RESULT, "f\n", "c1"),),
    ]


def test_where_a_harness_writes_no_calls_all_of_it_is_text() -> None:
    messages = normalise(
        [
            {"role": "assistant", "content": "THOUGHT: look\n\n```bash\nls\n```"},
            {"role": "user", "content": "<returncode>0</returncode>\n<output>\nf\n</output>"},
        ]
    )
    assert [part.kind for message in messages for part in message.parts] == [Kind.TEXT, Kind.TEXT]


KEYS = ["role", "content", "type", "text", "tool_calls", "tool_call_id", "function", "function_call", "arguments"]
KEYS += ["id", "name", "input", "tool_use_id", "parts", "toolUse", "toolResult", "toolUseId", "functionCall"]
KEYS += ["function_call", "functionResponse", "response", "inlineData", "thought", "image"]
TYPES = ["user", "tool", "tool_use", "tool_result", "function_call_output", "image", "reasoning"]
WORDS = st.sampled_from(KEYS + TYPES)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=20,
)


@given(st.lists(anything, max_size=4))
def test_nothing_that_a_list_may_hold_raises_or_is_changed(messages: list[Any]) -> None:
    before = copy.deepcopy(messages)
    read = normalise(messages)
    assert all(message.raw is raw for message, raw in zip(read, messages, strict=True))
    assert normalise(read) == read
    assert messages == before


# Blocks that every API knows, with anything in their fields.
KINDS = st.sampled_from(["toolUse", "toolResult", "functionCall", "functionResponse", "tool_use", "tool_result"])
FIELDS = st.dictionaries(st.sampled_from([*KEYS, "output", "args"]), anything, max_size=4)
blocks = st.builds(lambda kind, fields: {kind: fields}, KINDS, FIELDS)
blocks |= st.builds(lambda kind, fields: {**fields, "type": kind}, KINDS, FIELDS)
contents = st.lists(blocks | anything, max_size=3)
messages_of_blocks = st.builds(
    lambda key, made: {"role": "user", key: made}, st.sampled_from(["parts", "content"]), contents
)


@given(anything | blocks | messages_of_blocks)
@example({"toolResult": {"parts": "a"}})
@example({"functionResponse": {"parts": ["a"]}})
@example({"role": "user", "parts": [{"toolUse": {"role": "function"}}, {"toolResult": {}}]})
@example({"role": "user", "parts": [{"toolUse": {"content": [{"functionResponse": {}}]}}, {"toolResult": {}}]})
def test_what_is_read_can_be_written_and_nothing_else_changes(message: Any) -> None:
    before = copy.deepcopy(message)
    parts = normalise_one(message).parts
    for at, part in enumerate(parts):
        if part.kind is Kind.RESULT:
            after = normalise_one(with_result_text(message, part.call_id, "new", part.nth)).parts
            assert after[at].text == "new"
        elif part.kind is Kind.CALL:
            after = normalise_one(with_arguments(message, part.call_id, {"new": 1}, part.nth)).parts
            assert part.arguments is None or after[at].arguments == {"new": 1}
    assert with_texts(message, str) is message
    without_images(message, "new")
    assert message == before
