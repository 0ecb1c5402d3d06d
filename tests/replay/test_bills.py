"""What results cost while they are carried, and how a transcript's own usage fields are met."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache.core.model.tool_call import ToolCall
from readcache.report.replay.bills import Bill, Carried, ModelPrices
from readcache.transcripts.records import RequestSent

READ, WRITE, WRITE_HOUR = 0.1, 1.25, 2.0
PRICES = ModelPrices("model", 1.0, READ, WRITE, 5.0, WRITE_HOUR)


def test_a_result_is_written_once_and_read_by_each_later_call_until_it_goes() -> None:
    """Removals were counted in tokens, which are not dollars."""
    carried = Carried()
    for name in ("a", "b", "c"):
        carried.add(name, 1000, 100, marked=name == "c")
    carried.trim(frozenset({"b"}))
    assert carried.out == pytest.approx(1000 * (2 * WRITE + 2 * READ))
    assert carried.turns == pytest.approx(READ * (60_000 + 2 * 900) + 5 * 450)
    carried.add("d", 0, 0, marked=False)
    carried.trim()
    assert carried.out == pytest.approx(1000 * (3 * WRITE + 2 * READ + 2 * READ))
    assert carried.saved == pytest.approx(carried.out / 10)


@dataclass(frozen=True)
class Left:
    """Characters left out of a result, which came before a request; `kept`: it outlives cuts."""

    chars: int
    first: int
    kept: bool = False


def billed(
    requests: Sequence[RequestSent],
    left: Sequence[Left] = (),
    *,
    added: Sequence[int] = (),
    removals: Collection[int] = (),
    prices: ModelPrices | None = PRICES,
) -> Bill:
    """The bill of these requests; something was cut before those of `removals`."""
    bill = Bill(prices, chars_per_token=4)
    for number, request in enumerate(requests):
        if number in removals:
            bill.trim(frozenset(str(at) for at, one in enumerate(left) if one.kept))
        for at, one in enumerate(left):
            if one.first == number:
                bill.call(ToolCall(str(at), "bash", None, "", is_judged=False), {"max": one.chars})
        bill.sent(replace(request, added=added[number]) if added else request)
    return bill


def conversation(
    chars_per_token: float,
    left: Sequence[Left] = (),
    *,
    misses: tuple[int, ...] = (),
    prices: ModelPrices | None = PRICES,
) -> Bill:
    """Eight requests whose cache works as Anthropic's, but for `misses`."""
    rng, sent, added, prompt, answer = random.Random(1), list[RequestSent](), list[int](), 9000, 0
    for number in range(8):
        new = rng.randint(1000, 9000) if number else 0
        fresh = round(new / chars_per_token) + answer
        read = 0 if number in misses or not number else prompt
        prompt += fresh
        answer = rng.randint(50, 400)
        sent.append(RequestSent(cache_read=read, output=answer, cache_write=prompt - read))
        added.append(new)
    return billed(sent, left, added=added, prices=prices)


def cost(*requests: RequestSent) -> float:
    written = sum(r.fresh + WRITE * r.cache_write + WRITE_HOUR * r.cache_write_hour for r in requests)
    return written + sum(READ * r.cache_read + 5 * r.output for r in requests)


def test_a_bill_is_the_usage_fields_at_the_models_prices() -> None:
    requests = [RequestSent(10, 200, 3000, 40_000, 500), RequestSent(7, 0, 100, 9_000, 11)]
    bill = round(cost(*requests))
    prompt = sum(request.prompt for request in requests)
    assert billed(requests).counts() == {"prompt": prompt, "bill": bill, "requests": 2, "billed_sessions": 1}
    twice = replace(PRICES, input=2, read=2 * READ, write=2 * WRITE, write_hour=2 * WRITE_HOUR, output=10)
    assert billed(requests, prices=twice).money == pytest.approx(2 * cost(*requests))


def test_a_long_prompt_costs_a_multiple_and_what_makes_it_short_saves_that() -> None:
    dear = replace(PRICES, above=10_000, times_input=2, times_output=1.5)
    short, long = RequestSent(fresh=10_000, output=100), RequestSent(fresh=10_001, output=100)
    assert billed([short], prices=dear).money == pytest.approx(10_000 + 500)
    bill = billed([long], [Left(4, 0)], prices=dear)
    assert bill.money == pytest.approx(20_002 + 750)
    assert bill.saved("max") == pytest.approx((1, 20_002 + 750 - 10_500))


def test_a_models_prices_that_are_not_known_make_no_bill() -> None:
    bill = conversation(3.1, [Left(4000, 3)], prices=None)
    assert (bill.counts()["billed_sessions"], bill.counts()["bill"]) == (1, 0)
    tokens, money = bill.saved("max")
    assert (tokens > 0, money) == (True, 0)


def test_what_was_left_out_would_have_been_written_once_and_read_while_the_cache_held() -> None:
    """Discounts of the provider were claimed."""
    tokens, money = conversation(4.0, [Left(4000, 3)]).saved("max")
    assert tokens == pytest.approx(1000 * 5, rel=0.01)
    assert money == pytest.approx(1000 * (WRITE + 4 * READ), rel=0.01)
    _, dearer = conversation(4.0, [Left(4000, 3)], misses=(5,)).saved("max")
    assert dearer == pytest.approx(1000 * (2 * WRITE + 3 * READ), rel=0.01)


@pytest.mark.parametrize("chars_per_token", [2.0, 3.1, 5.0])
def test_the_turns_tell_how_many_characters_make_a_token(chars_per_token: float) -> None:
    tokens, _ = conversation(chars_per_token, [Left(900, 3)]).saved("max")
    assert tokens == pytest.approx(5 * 900 / chars_per_token, rel=0.01)


REQUESTS = st.lists(
    st.builds(RequestSent, *[st.integers(0, 60_000)] * 4, output=st.integers(0, 900), answer=st.integers(0, 4000)),
    min_size=1,
    max_size=8,
)
LEFT = st.lists(st.builds(Left, st.integers(0, 10**6), st.integers(0, 8), st.booleans()), max_size=9)


@given(REQUESTS, LEFT, st.frozensets(st.integers(0, 8)), st.lists(st.integers(0, 90_000), min_size=8, max_size=8))
def test_no_more_is_saved_than_the_requests_had_and_cost_by_their_own_fields(
    requests: list[RequestSent], left: list[Left], removals: frozenset[int], added: list[int]
) -> None:
    """61 % of a bill was printed as saved, where uncached input was 26 % of it: texts that outlived a compaction were
    taken for uncached in each later request."""
    tokens, money = billed(requests, left, added=added, removals=removals).saved("max")
    assert 0 <= tokens <= sum(request.prompt for request in requests) + 0.01
    assert -0.01 <= money <= cost(*(replace(request, output=0) for request in requests)) + 0.01


def test_what_outlives_a_cut_is_read_from_the_cache_where_one_is() -> None:
    requests = [RequestSent(fresh=1000, cache_read=19_000)] * 4 + [RequestSent(fresh=1000, cache_read=9_000)] * 4
    tokens, money = billed(requests, [Left(400, 3, kept=True)], removals=[4]).saved("max")
    assert tokens == pytest.approx(500)
    assert money < 0.5 * tokens
    gone, _ = billed(requests, [Left(400, 3)], removals=[4]).saved("max")
    assert gone == pytest.approx(100)


def test_without_usage_fields_nothing_is_guessed() -> None:
    bill = billed([])
    assert bill.counts() == {"prompt": 0, "bill": 0, "requests": 0, "billed_sessions": 0}
    assert bill.saved("max") == (0, 0)
