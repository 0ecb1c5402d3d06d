"""Whatever comes in and however small the window is: what goes out can be sent, and gets smaller until it is told why
it does not."""

from __future__ import annotations

import copy
from collections import Counter
from itertools import pairwise, takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Budget, Session
from readcache.context import Compactor, How
from readcache.context.formed import sendable
from readcache.context.two_steps import compact_with, compaction_request
from readcache.core.messages.messages import Kind, normalise
from tests.helpers.chats import (
    APIS,
    Step,
    call_message,
    calls_and_results,
    chat,
    is_sendable,
    result_messages,
    results,
    text,
    texts,
)
from tests.helpers.compactor import SUMMARY, Model, TooLong, assert_true_markers, commands

each_shape = pytest.mark.parametrize("shape", APIS)
SECTION = "## Files restored after compaction"


def sections(messages: Any) -> list[str]:
    return [found for found in texts(messages) if found.startswith(SECTION)]


def many_reads(shape: str, session: Session) -> list[Any]:
    names = [f"f{n}" for n in range(30)]
    return commands(shape, session, *[(f"cat {name}", text(1, 120, of=name)) for name in names], ("ls", text(1, 300)))


# ------------------------------------------------------------ what was put back goes first


@each_shape
def test_what_was_put_back_shrinks_and_goes_before_a_turn_does(shape: str) -> None:
    session = Session("/w")
    budget = Budget(max_tokens=20_000, max_tokens_per_file=20_000)
    compactor = Compactor(session, Model(), trigger_tokens=150_000, budget=budget)
    messages = compactor.compact(many_reads(shape, session))
    sizes, hows = [len("".join(sections(messages)))], []
    assert sizes[0] > 40_000
    while (after := compactor.compact(messages)) is not messages:
        kept = results(messages)
        messages = after
        hows.append(compactor.report.how)
        sizes.append(len("".join(sections(messages))))
        assert hows[-1] is not How.SHRUNK or results(messages).keys() == kept.keys()
        assert is_sendable(messages)
        assert_true_markers(session, messages)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0, "the last turn alone is left, and its texts were cut"
    assert hows[:2] == [How.SHRUNK, How.SHRUNK]
    assert hows[-1] is How.CLIPPED
    assert compactor.report.how is How.NOTHING


@each_shape
def test_an_agent_whose_window_is_smaller_than_its_trigger_goes_on(shape: str) -> None:
    session = Session("/w")
    budget = Budget(max_tokens=20_000, max_tokens_per_file=20_000)
    compactor = Compactor(session, Model(), trigger_tokens=150_000, budget=budget)
    asked = []

    def model(messages: list[Any]) -> dict[str, Any]:
        asked.append(sum(map(len, texts(messages))))
        if asked[-1] > 24_000:
            raise TooLong
        return {"role": "assistant", "content": "done"}

    answer, messages = compactor.ask(model, many_reads(shape, session))
    assert answer["content"] == "done"
    assert is_sendable(messages)
    assert len(asked) < 8


def test_what_a_tighter_compaction_took_away_is_not_put_back() -> None:
    session = Session("/w")
    compactor = Compactor(session, Model(), trigger_tokens=150_000)
    messages = compactor.compact(many_reads("openai", session))
    while sections(messages):
        messages = compactor.compact(messages)
    assert len(results(messages)) == 2
    messages = compactor.compact(messages)
    assert (len(results(messages)), sections(messages)) == (1, [])


# ------------------------------------------------------------ the reason is told


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("answer", [SUMMARY, RuntimeError("down"), "long\n" * 4_000])
@pytest.mark.parametrize("trigger", [10, 300, 1_000, 2_000, 20_000])
def test_below_the_trigger_or_the_reason_is_told(trigger: int, answer: Any, forced: bool) -> None:
    session = Session("/w")
    compactor = Compactor(session, Model(answer), trigger_tokens=trigger)
    messages = many_reads("openai", session)
    for _ in range(12):
        messages = compactor.compact(messages) if forced else compactor.maybe_compact(messages)
        report = compactor.report
        assert report.tokens_after < trigger or f"{report.tokens_after} tokens are left at a trigger" in report.trouble
    if trigger >= 1_000:
        assert report.tokens_after < trigger
    else:
        assert report.trouble.endswith("nothing more can be taken out")


# ------------------------------------------------------------ lists that are not well formed

words = st.sampled_from(["", " ", "so", "go on", text(1, 60), "## Summary of the conversation so far\n\nx", SECTION])
ids = st.sampled_from([None, *[f"c{n}" for n in range(6)]])


def blocks_of(*kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.one_of(*kinds), max_size=3)


calls = st.builds(
    lambda i, word: {
        "id": i,
        "type": "function",
        "function": {"name": "bash", "arguments": f'{{"command": "{word}"}}'},
    },
    ids,
    st.sampled_from(["ls", "cat f"]),
)
uses = st.builds(lambda i: {"type": "tool_use", "id": i, "name": "bash", "input": {"command": "ls"}}, ids)
said = st.builds(lambda word: {"type": "text", "text": word}, words)
given_back = st.builds(lambda i, word: {"type": "tool_result", "tool_use_id": i, "content": word}, ids, words)


def messages_of(api: str) -> st.SearchStrategy[Any]:
    """Messages of an API whose blocks have no type."""
    named = st.sampled_from([f"c{n}" for n in range(6)])
    blocks = "parts" if api == "gemini" else "content"
    texts_of = st.builds(lambda word: {"text": word}, words)
    calls_of = st.builds(lambda i: call_message(api, [(i, "bash", {"command": "ls"})])[blocks][-1], named)
    results_of = st.builds(lambda i, word: result_messages(api, [(i, word, False)])[0][blocks][0], named, words)
    model = "model" if api == "gemini" else "assistant"
    said_by = st.builds(lambda made: {"role": model, blocks: made}, blocks_of(texts_of, calls_of))
    return said_by | st.builds(lambda made: {"role": "user", blocks: made}, blocks_of(texts_of, results_of))


LISTS = {
    "openai": st.lists(
        st.one_of(
            st.builds(
                lambda role, word: {"role": role, "content": word}, st.sampled_from(["user", "assistant"]), words
            ),
            st.builds(lambda role: {"role": role, "content": None}, st.sampled_from(["user", "assistant"])),
            st.builds(
                lambda word, made: {"role": "assistant", "content": word, "tool_calls": made},
                st.none() | words,
                st.lists(calls, max_size=3),
            ),
            st.builds(lambda i, word: {"role": "tool", "tool_call_id": i, "content": word}, ids, words),
        ),
        max_size=14,
    ),
    "anthropic": st.lists(
        st.one_of(
            st.builds(
                lambda role, word: {"role": role, "content": word}, st.sampled_from(["user", "assistant"]), words
            ),
            st.builds(lambda made: {"role": "assistant", "content": made}, blocks_of(said, uses)),
            st.builds(lambda made: {"role": "user", "content": made}, blocks_of(said, given_back)),
        ),
        max_size=14,
    ),
    "converse": st.lists(messages_of("converse"), max_size=14),
    "gemini": st.lists(messages_of("gemini"), max_size=14),
}


def is_well_formed(shape: str, messages: Any) -> bool:
    """Can it be sent? The calls at the end may wait for their results."""
    answers = [{"role": "tool", "tool_call_id": call_id, "content": ""} for call_id in waiting_in(messages)]
    if not is_sendable([*messages, *answers]):
        return False
    if not all(says_something(message) for message in messages):
        return False
    if shape == "openai":
        return True
    has_calls = any(part.kind is not Kind.TEXT for message in normalise(messages) for part in message.parts)
    return not has_calls or all(a["role"] != b["role"] for a, b in pairwise(messages))


def waiting_in(messages: Any) -> list[str]:
    """The calls that the last messages leave open: those of the model, and results alone."""
    end = list(takewhile(lambda m: m["role"] in ("assistant", "model") or results([m]), reversed(messages)))
    open_ = Counter[str]()
    for kind, call_id in calls_and_results(end[::-1]):
        open_[call_id] += 1 if kind == "call" else -1
    return list(open_.elements())


def says_something(message: Any) -> bool:
    content = message["parts"] if "parts" in message else message["content"]
    if message["role"] == "tool" or message.get("tool_calls"):
        return True
    if isinstance(content, list):
        return bool(content) and all(block["text"].strip() for block in content if "text" in block)
    return bool(content and content.strip())


@given(st.data(), st.sampled_from(APIS), st.sampled_from([1, 50, 400]), st.booleans(), st.integers(0, 2))
def test_a_list_in_any_state_goes_out_well_formed_or_untouched(
    data: st.DataObject, shape: str, trigger: int, forced: bool, keep_turns: int
) -> None:
    messages = data.draw(LISTS[shape])
    before = copy.deepcopy(messages)
    session = Session("/w")
    compactor = Compactor(session, Model(), trigger_tokens=trigger, keep_turns=keep_turns)
    after = compactor.compact(messages) if forced else compactor.maybe_compact(messages)
    assert messages == before
    assert after is messages or is_well_formed(shape, after), after
    assert compactor.report.tokens_after < trigger or compactor.report.trouble
    ready = compactor.ready(messages)
    assert ready is messages or is_well_formed(shape, ready), ready
    two_steps, report, _ = compact_with(messages, session, SUMMARY, keep_turns=keep_turns)
    assert two_steps is messages or is_well_formed(shape, two_steps), two_steps
    assert compaction_request(messages, session, keep_turns=keep_turns) or report.how is not How.SUMMARISED


def test_what_cannot_be_read_is_not_empty() -> None:
    opaque = {"type": "compaction", "encrypted_content": "…"}
    thought = {"type": "redacted_thinking", "data": "…"}
    kept: list[Any] = [{"role": "assistant", "content": [opaque]}, {"role": "user", "content": [thought]}, opaque]
    blank: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": ""}, None]},
        {"role": "assistant", "content": [None]},
    ]
    assert [message.raw for message in sendable(normalise([*kept, *blank]))] == kept


@each_shape
def test_the_results_of_a_batch_under_way_may_still_come(shape: str) -> None:
    session = Session("/w")
    steps = [Step(f"make {n}", text(1, 80)) for n in range(6)]
    messages = chat(shape, *steps, [Step("ls", "f\n"), Step("true", None)])
    orphan = chat(shape, Step("gone", "gone\n"))[-1]
    after = Compactor(session, Model(), trigger_tokens=1).compact([orphan, *messages])
    assert after[-2:] == messages[-2:]
    assert "gone\n" not in results(after).values()
