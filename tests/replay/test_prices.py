"""What results cost while they are carried, and how a transcript's own usage fields are met."""

from __future__ import annotations

import random

import pytest

from readcache.replay.prices import READ, TURN_OUTPUT, TURN_PROMPT, WRITE, Bill, Carried, Stay
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


def test_without_usage_fields_nothing_is_guessed() -> None:
    bill = Bill([], [], frozenset())
    assert not bill.known
    assert bill.counts() == {}
    assert bill.saved([Stay(4000, 0, 5)]) == (0, 0)
