"""Whatever an agent does and however its summariser fails: lists stay well formed, and no marker dangles."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from readcache import Policy, Session
from readcache.context import Compactor
from tests.helpers.chats import chat, is_sendable, results, roles_alternate
from tests.helpers.compactor import SUMMARY, Model, TooLong, agent_turns, assert_true_markers, observed_turn

answers = st.lists(st.sampled_from([SUMMARY, "", "<think>hm", TooLong(), RuntimeError("down")]), min_size=1, max_size=6)


@given(
    st.sampled_from(["openai", "anthropic", "no ids"]),
    agent_turns,
    answers,
    st.integers(0, 3),
    st.sampled_from([400, 1_500, 4_000]),
    st.booleans(),
)
def test_at_every_step_the_list_is_well_formed_and_its_markers_are_true(
    shape: str, asked: list[list[tuple[str, str]]], said: list[Any], keep_turns: int, trigger: int, force: bool
) -> None:
    session = Session("/w", policy=Policy(delta=True))
    compactor = Compactor(session, Model(*said), trigger_tokens=trigger, keep_turns=keep_turns)
    head = chat("anthropic" if shape == "anthropic" else "openai")
    messages = head
    for number, each in enumerate(asked):
        new = observed_turn(shape, session, number, each)
        messages = [*messages, *new]
        after = compactor.compact(messages) if force and number % 3 == 2 else compactor.maybe_compact(messages)
        assert is_sendable(list(after))
        assert shape != "anthropic" or roles_alternate(after)
        assert shape == "anthropic" or after[: len(head)] == head
        assert_true_markers(session, after)
        if keep_turns:
            assert results(after).keys() >= results(new).keys()
        assert (after is messages) == (compactor.report.how.name == "NOTHING")
        messages = after
