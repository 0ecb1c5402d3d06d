"""What results cost while they are carried, and how a transcript's own usage fields are met."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache.replay.prices import READ, TURN_OUTPUT, TURN_PROMPT, WRITE, WRITE_HOUR, Bill, Carried, Stay
from readcache.transcripts.records import RequestSent


def test_a_result_is_written_once_and_read_by_each_later_call_until_it_goes() -> None:
    carried = Carried()
    for name in ("a", "b", "c"):
        carried.add(name, 1000, 100, marked=name == "c")
    carried.cut(frozenset({"b"}))
    assert carried.out == pytest.approx(1000 * (2 * WRITE + 2 * READ))
    assert carried.turns == pytest.approx(READ * (TURN_PROMPT + 2 * 900) + TURN_OUTPUT)
    carried.add("d", 0, 0, marked=False)
    carried.cut()
    assert carried.out == pytest.approx(1000 * (3 * WRITE + 2 * READ + 2 * READ))
    assert carried.saved == pytest.approx(carried.out / 10)


def conversation(chars_per_token: float, *, hour: bool = False, misses: tuple[int, ...] = ()) -> Bill:
    """Twenty requests whose cache works as Anthropic's, but for `misses`."""
    rng, sent, added, prompt, answer = random.Random(1), list[RequestSent](), list[int](), 9000, 0
    for number in range(20):
        new = rng.randint(1000, 9000) if number else 0
        fresh = round(new / chars_per_token) + answer
        read = 0 if number in misses or not number else prompt
        prompt += fresh
        answer = rng.randint(50, 400)
        written = {"cache_write_hour" if hour else "cache_write": prompt - read}
        sent.append(RequestSent(cache_read=read, output=answer, **written))
        added.append(new)
    return Bill(sent, added, frozenset())


@pytest.mark.parametrize("hour", [False, True])
def test_turns_are_reproduced_by_prices_and_a_calibrated_size(hour: bool) -> None:
    counts = conversation(3.1, hour=hour).counts()
    assert (counts["predicted"], counts["reproduced"]) == (19, 19)


def test_a_turn_that_missed_the_cache_is_not_said_to_be_reproduced() -> None:
    counts = conversation(3.1, misses=(5, 9)).counts()
    assert (counts["predicted"], counts["reproduced"]) == (19, 17)


def test_what_was_left_out_would_have_been_written_once_and_read_while_the_cache_held() -> None:
    tokens, cost = conversation(4.0).saved([Stay(4000, 3, 8)])
    assert tokens == pytest.approx(1000 * 5, rel=0.01)
    assert cost == pytest.approx(1000 * (WRITE + 4 * READ), rel=0.01)
    _, dearer = conversation(4.0, misses=(5,)).saved([Stay(4000, 3, 8)])
    assert dearer == pytest.approx(1000 * (2 * WRITE + 3 * READ), rel=0.01)


REQUESTS = st.lists(
    st.builds(RequestSent, *[st.integers(0, 60_000)] * 4, output=st.integers(0, 900), answer=st.integers(0, 4000)),
    min_size=1,
    max_size=8,
)
STAYS = st.lists(st.builds(Stay, st.integers(0, 10**6), st.integers(0, 8), st.integers(0, 9)), max_size=9)


@given(REQUESTS, STAYS, st.frozensets(st.integers(0, 8)), st.lists(st.integers(0, 90_000), min_size=8, max_size=8))
def test_no_more_is_saved_than_the_requests_had_and_cost_by_their_own_fields(
    requests: list[RequestSent], stays: list[Stay], cuts: frozenset[int], added: list[int]
) -> None:
    """61 % of a bill was printed as saved, where uncached input was 26 % of it: texts that outlived a compaction were
    taken for uncached in each later request."""
    tokens, cost = Bill(requests, added[: len(requests)], cuts).saved(stays)
    assert 0 <= tokens <= sum(request.prompt for request in requests) + 0.01
    written = sum(r.fresh + WRITE * r.cache_write + WRITE_HOUR * r.cache_write_hour for r in requests)
    assert 0 <= cost <= written + READ * sum(r.cache_read for r in requests) + 0.01


def test_what_outlives_a_cut_is_read_from_the_cache_where_one_is() -> None:
    requests = [RequestSent(fresh=1000, cache_read=19_000)] * 4 + [RequestSent(fresh=1000, cache_read=9_000)] * 4
    tokens, cost = Bill(requests, [4000] * 8, frozenset({4})).saved([Stay(400, 3, 8)])
    assert cost < 0.5 * tokens


def test_nothing_is_said_of_the_bill_where_the_prices_reproduce_less_than_half_of_the_turns() -> None:
    rng = random.Random(2)
    strange = [RequestSent(fresh=rng.randint(1, 90_000), cache_read=rng.randint(1, 90_000)) for _ in range(30)]
    bill = Bill(strange, [1000] * 30, frozenset())
    assert not bill.holds
    assert bill.counts()["bill"] == 0
    assert conversation(3.1).holds


def test_without_usage_fields_nothing_is_guessed() -> None:
    bill = Bill([], [], frozenset())
    assert not bill.known
    assert bill.counts() == {}
    assert bill.saved([Stay(4000, 0, 5)]) == (0, 0)
