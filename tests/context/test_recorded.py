"""A compactor records what it does: the whole list and its condensations give the list that it returned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Marks, Policy, Session
from readcache.context import Compactor, Condensation, How, view_of
from tests.helpers.chats import Messages, Raw, chat, is_sendable, said, text
from tests.helpers.compactor import FILES, SUMMARY, Model, TooLong, agent_turns, commands, observed_turn, six_reads

SHAPES = ("openai", "responses", "anthropic", "gemini", "no ids")
shapes = pytest.mark.parametrize("shape", SHAPES)


def as_items(message: Any) -> Iterator[Raw]:
    """Yield a message of OpenAI's chats as items of its Responses API."""
    if message["role"] == "tool":
        yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
    elif message.get("content"):
        yield {"role": message["role"], "content": message["content"]}
    for call in message.get("tool_calls", ()):
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def in_shape(shape: str, messages: Messages) -> Messages:
    return [item for each in messages for item in as_items(each)] if shape == "responses" else messages


def turn(shape: str, session: Session, number: int, asked: list[tuple[str, str]]) -> Messages:
    return in_shape(shape, observed_turn("openai" if shape == "responses" else shape, session, number, asked))


def head_of(shape: str) -> Messages:
    return in_shape(shape, chat(shape if shape in ("anthropic", "gemini") else "openai"))


def picture(shape: str) -> Raw:
    if shape == "gemini":
        return {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}]}
    kinds: dict[str, Raw] = {
        "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        "responses": {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
    }
    image = kinds.get(shape, {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}})
    return {"role": "user", "content": [image]}


steps = st.tuples(
    st.lists(st.sampled_from(["nothing", "compact", "request", "user", "long", "image"]), max_size=2),
    st.booleans(),
)


@given(
    st.sampled_from(SHAPES),
    agent_turns,
    st.lists(steps, min_size=10, max_size=10),
    st.lists(st.sampled_from([SUMMARY, "", TooLong()]), min_size=1, max_size=4),
    st.sampled_from([400, 1_500, 4_000, 8_000, 16_000]),
    st.sampled_from([None, Marks(2_000, 0), Marks(4_000, 0), Marks(6_000, 3_000)]),
)
def test_the_whole_list_and_the_condensations_give_what_was_returned(
    shape: str,
    asked: list[list[tuple[str, str]]],
    how: list[tuple[list[str], bool]],
    answers: list[Any],
    trigger: int,
    marks: Marks | None,
) -> None:
    session = Session("/w", policy=Policy(delta=True, clear=marks))
    told: list[Condensation] = []
    compactor = Compactor(session, Model(*answers), trigger_tokens=trigger, on_condensation=told.append)
    whole = head_of(shape)
    kept = whole
    for number, (each, (extra, gives_whole)) in enumerate(zip(asked, how, strict=False)):
        new = turn(shape, session, number, [*each, ("cat h", FILES["h"])] if shape != "no ids" else each)
        new += [said(shape, "go on")] * extra.count("user") + [said(shape, text(1, 90))] * extra.count("long")
        new += [picture(shape)] * extra.count("image")
        whole, kept = [*whole, *new], [*kept, *new]
        if "request" in extra:
            compactor.request_compaction()
        shorten = compactor.compact if "compact" in extra else compactor.ready
        kept = shorten(whole if gives_whole else kept)
        assert "recorded" not in compactor.report.trouble
        assert "not applied" not in compactor.report.trouble
        assert view_of(whole, compactor.condensations) == kept
        assert [Condensation.from_dict(one.to_dict()) for one in told] == compactor.condensations
        assert shape == "responses" or is_sendable(kept)


@shapes
def test_a_whole_list_is_summarised_once(shape: str) -> None:
    session, model = Session("/w"), Model()
    compactor = Compactor(session, model, trigger_tokens=3_000)
    whole = head_of(shape)
    for number in range(6):
        whole = [*whole, *turn(shape, session, number, [(f"cat {number}", text(of=str(number)))])]
    shorter = compactor.ready(whole)
    assert compactor.report.how is How.SUMMARISED
    assert compactor.ready(whole) == shorter
    assert compactor.ready(shorter) is shorter
    assert len(model.asked) == 1


def test_a_requested_compaction_is_made_once_at_the_next_step() -> None:
    session, model = Session("/w"), Model()
    compactor = Compactor(session, model, trigger_tokens=1_000_000)
    messages = six_reads("openai", session)
    assert compactor.ready(messages) is messages
    compactor.request_compaction()
    shorter = compactor.ready(messages)
    assert compactor.report.how is How.SUMMARISED
    assert compactor.ready(shorter) is shorter
    assert len(model.asked) == 1


def test_another_conversation_with_the_same_ids_gets_no_summary_of_the_first() -> None:
    compactor = Compactor(Session("/w"), Model(), trigger_tokens=1_000_000)
    compactor.compact(six_reads("openai", Session("/w")))
    other = commands("openai", Session("/w"), *[(f"cat {name}", text(of=f"other {name}")) for name in "abcdef"])
    assert compactor.maybe_compact(other) is other
    assert "not applied, because the list differs: condensation 1-" in compactor.report.trouble
    assert compactor.condensations == []


def test_a_list_that_was_rewound_gets_no_summary_of_what_came_after() -> None:
    session = Session("/w")
    compactor = Compactor(session, Model(), trigger_tokens=1_000_000)
    whole = six_reads("openai", session)
    compactor.compact(whole)
    assert compactor.ready(whole[:6]) == whole[:6]


def test_moved_marks_for_the_prompt_cache_are_sent_as_they_are_now() -> None:
    session = Session("/w")
    compactor = Compactor(session, Model(), trigger_tokens=1_000_000)
    kept = compactor.compact(six_reads("anthropic", session))
    for number in range(3):
        kept = [*kept, *observed_turn("anthropic", session, number, [(f"cat {number}", text(of=str(number)))])]
        for at, message in enumerate(kept):
            blocks = message["content"] if isinstance(message["content"], list) else []
            marked = [{k: v for k, v in block.items() if k != "cache_control"} for block in blocks]
            if at == len(kept) - 1:
                marked[-1]["cache_control"] = {"type": "ephemeral"}
            kept[at] = {**message, "content": marked or message["content"]}
        kept = compactor.ready(kept)
        assert str(kept).count("cache_control") == 1
    assert len(compactor.condensations) == 1


@shapes
def test_what_pruning_alone_changed_is_recorded(shape: str) -> None:
    session, whole = Session("/w"), head_of(shape)
    for number, (command, output) in enumerate([("make", text(1, 900)), ("ls", "a\n"), ("true", "")]):
        whole = [*whole, *turn(shape, session, number, [(command, output)]), picture(shape)]
    compactor = Compactor(session, Model(), trigger_tokens=12_000)
    kept = compactor.ready(whole)
    assert compactor.report.how is How.PRUNED
    assert [each.why for each in compactor.condensations] == ["pruned"]
    assert view_of(whole, compactor.condensations) == kept
    assert sum(len(change.note) for change in compactor.condensations[0].changes) < 500
    assert compactor.ready(whole) == kept


@shapes
def test_a_repaired_marker_is_recorded(shape: str) -> None:
    session, head = Session("/w", policy=Policy(delta=True)), head_of(shape)
    turns = [turn(shape, session, number, [("cat f", text())]) for number in range(2)]
    compactor = Compactor(session, Model(), trigger_tokens=1_000_000)
    whole = [*head, *turns[0], *turns[1]]
    assert compactor.ready(whole) is whole
    left = [*head, *turns[1]]
    kept = compactor.ready(left)
    assert [each.why for each in compactor.condensations] == ["mended"]
    assert view_of(left, compactor.condensations) == kept != left
