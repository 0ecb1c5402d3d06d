"""The one count of tokens: by the model's family, and of a conversation by the provider's own counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Policy
from readcache.core.model.tokens import ConversationTokens, CountByChars, chars_per_token, count_by_chars, family_of


@pytest.mark.parametrize(
    ("model", "chars"),
    [
        ("claude-opus-4-6", 2.8),
        ("claude-sonnet-4-20250514", 2.8),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 2.8),
        ("claude-3-5-sonnet-20241022", 2.8),
        ("claude", 2.8),
        ("anthropic/claude-opus-4.7", 2.0),
        ("claude-opus-4-8", 2.0),
        ("claude-opus-5[1m]", 2.0),
        ("claude-fable-5-1", 2.0),
        ("claude-haiku-5-5", 2.0),
        ("gpt-5.4", 3.3),
        ("openai/gpt-6-sol", 3.3),
        ("gemini-3-flash-preview", 2.9),
        ("gpt-4o", 3.0),
        ("deepseek-v4-pro", 3.0),
        ("", 3.0),
    ],
)
def test_a_model_has_the_characters_of_its_family(model: str, chars: float) -> None:
    assert chars_per_token(model) == Policy(model=model).chars_per_token == chars
    assert family_of(model).date


def test_a_policy_counts_by_its_model_and_by_the_users_function_if_there_is_one() -> None:
    text = "x" * 84
    assert Policy().count_tokens(text) == count_by_chars(text) == 28
    claude = Policy(model="claude-opus-5")
    assert claude.tokens(text) == claude.count_tokens(text) == 42
    assert replace(claude, model="claude-opus-4-6").tokens(text) == 30
    assert replace(Policy(count_tokens=len), model="gpt-5.4").tokens(text) == 84
    assert Policy() == replace(claude, model="")


def test_a_count_that_fails_is_made_by_the_characters_of_the_model() -> None:
    def refuse(_: str) -> int:
        raise OSError

    assert Policy(model="claude-opus-5", count_tokens=refuse).tokens("x" * 84) == 42


@given(st.lists(st.text(max_size=40), max_size=9), st.sampled_from((2.0, 2.8, 2.9, 3.0, 3.3)))
def test_parts_of_a_text_have_as_many_tokens_as_the_text_or_one_more_for_each(parts: list[str], chars: float) -> None:
    count = CountByChars(chars)
    assert count("".join(parts)) <= sum(map(count, parts)) <= count("".join(parts)) + len(parts)


def test_a_conversation_is_what_the_provider_counted_and_what_is_new() -> None:
    size = ConversationTokens(least=1_000)
    assert size.of(500) == 500, "no request is known: our own count"
    size.sent(40_000, 500)
    assert size.of(500) == 40_000
    assert size.of(1_500) == 41_000
    assert size.of(200) == 39_700, "something was cleared"


def test_an_answer_counts_once_and_only_if_its_count_is_plausible() -> None:
    size = ConversationTokens(least=1_000)
    size.answered(40_000, "a1")
    assert not size.is_known, "no request is known"
    size.asked(500)
    size.answered(40_000, "a1")
    assert not size.is_known, "a1 answers an earlier request"
    size.answered(41_000, "a2")
    assert size.of(500) == 41_000
    size.asked(9_000)
    size.answered(41_000, "a2")
    size.answered(0, "a3")
    size.answered(4_000, "a4")
    assert size.of(9_000) == 49_500, "a2 is known, a3 has no count, and a4 one without cached tokens"
    size.answered(50_000)
    assert size.of(9_000) == 50_000


def test_turns_that_add_much_correct_the_count_and_a_compaction_forgets_them() -> None:
    size = ConversationTokens(least=1_000)
    for turn in range(4):
        size.sent(40_000 + 3_000 * turn, 2_000 * turn)
        assert size.ratio == (1.5 if turn == 3 else 1), "three turns are needed"
    assert size.of(8_000) == 52_000
    size.sent(49_010, 6_005)
    assert size.ratio == 1.5, "a small turn says more of the host's own text than of a token"
    size.restart()
    assert (size.of(700), size.ratio) == (700, 1)


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 10**6)), min_size=1, max_size=20))
def test_the_last_request_has_the_size_that_the_provider_counted(requests: list[tuple[int, int]]) -> None:
    size = ConversationTokens(least=1_000)
    for prompt, counted in requests:
        size.sent(prompt, counted)
        assert size.of(counted) == prompt
        assert size.ratio > 0
