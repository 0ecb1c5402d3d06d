"""The cost of characters while they are carried, and the cost of requests by a transcript's own fields.

A result is written to the provider's prompt cache once and read from it by each later call, until it leaves the
conversation. `Carried` counts so in characters, for transcripts that say nothing of tokens. `Bill` goes by the
transcript's own fields, and says how many of its turns the model reproduces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from readcache import Policy
from readcache.transcripts.records import RequestSent

CHARS_PER_TOKEN = 4.0  # where no turn tells
# What a session goes by when it weighs an omission: ratios of uncached input, Anthropic's for a cache of five minutes.
_USUAL = Policy().prices
WRITE, READ, OUTPUT = _USUAL.write, _USUAL.read, _USUAL.output
WRITE_HOUR = 2.0  # to a cache that holds for an hour
# What a turn costs that a marker provokes, in characters: it reads the prompt again, and what is carried, and answers.
TURN_PROMPT, TURN_OUTPUT = CHARS_PER_TOKEN * _USUAL.prompt, CHARS_PER_TOKEN * OUTPUT * _USUAL.answer
NEAR = 0.02  # a turn is reproduced when its cost is met within this share
ENOUGH = 1_000  # characters that one of two turns must add more to tell how many of them make a token
ROUNDS = 4  # of calibration; the numbers stand still after three


class ProviderPrices(NamedTuple):
    """Ratios of uncached input: to write to a cache, to read from one, to get a token of output. `keeps_answers`: the
    next request finds the answer in the cache, too."""

    write: float
    read: float
    output: float
    keeps_answers: bool


ANTHROPIC = ProviderPrices(WRITE, READ, OUTPUT, keeps_answers=False)
OPENAI = ProviderPrices(1.0, READ, 8.0, keeps_answers=True)  # GPT-5: nothing more for writing to the cache


class _Result(NamedTuple):
    at: int  # the number of its call
    out: int
    saved: int


class Carried:
    """The results that are carried, and the cost of those that no longer are, in characters of uncached input."""

    def __init__(self) -> None:
        self.out = self.saved = self.turns = 0.0
        self._calls = 0
        self._size = 0
        self._live: dict[str, _Result] = {}

    def add(self, call_id: str, out: int, saved: int, *, marked: bool) -> None:
        """One more result: its characters, those left out of it, and whether that needed a marker."""
        if marked:
            self.turns += READ * (TURN_PROMPT + self._size) + TURN_OUTPUT
        if call_id in self._live:
            self._end(self._live.pop(call_id))
        self._live[call_id] = _Result(self._calls, out, saved)
        self._calls += 1
        self._size += out - saved

    def cut(self, kept: frozenset[str] = frozenset()) -> None:
        """All but these results leave the conversation."""
        for name in [name for name in self._live if name not in kept]:
            self._end(self._live.pop(name))

    def _end(self, result: _Result) -> None:
        price = self.price(result.at)
        self.out += result.out * price
        self.saved += result.saved * price
        self._size -= result.out - result.saved

    def price(self, at: int) -> float:
        """What a character of call number `at` (from 0) has cost by now."""
        return _USUAL.while_carried(self._calls - 1 - at)

    @property
    def calls(self) -> int:
        """Results so far."""
        return self._calls


@dataclass(frozen=True, slots=True)
class Stay:
    """Characters that stood in the requests `first` to `end` - 1 (from 0)."""

    chars: int
    first: int
    end: int


class Bill:
    """The requests of one conversation. `added[i]`: characters that came between request `i` - 1 and `i`; `cuts`: the
    requests before which something left the conversation."""

    def __init__(self, requests: Sequence[RequestSent], added: Sequence[int], cuts: frozenset[int]) -> None:
        self._requests = [request for request in requests if request.prompt]
        self.known = len(self._requests) == len(requests) > 0
        self.prices = _prices_of(requests)
        self._added, self._cuts = added, cuts
        self._tokens_per_char, self._a_turn = 1 / CHARS_PER_TOKEN, 0.0  # the second: what a host adds to each turn
        self._reach = 1.0  # the share of what may be in the cache that is
        if self.known:
            self._calibrate()
            ways = [self.prices._replace(keeps_answers=way) for way in (self.prices.keeps_answers, True, False)]
            self.prices = max(ways, key=self._reproduced)

    def counts(self) -> dict[str, int]:
        """`prompt` (tokens of all requests), `bill` (in tokens of uncached input, 0 where the prices do not hold),
        `requests`, `predicted` and `reproduced` (turns)."""
        if not self.known:
            return {}
        return {
            "prompt": sum(request.prompt for request in self._requests),
            "bill": round(sum(self._cost(i) for i in range(len(self._requests)))) if self.holds else 0,
            "requests": len(self._requests),
            "predicted": len(self._followers()),
            "reproduced": self._reproduced(self.prices),
        }

    @property
    def holds(self) -> bool:
        """True if the prices reproduce at least half of the turns: else nothing is said of the bill."""
        return self.known and 2 * self._reproduced(self.prices) >= len(self._followers())

    def saved(self, stays: Sequence[Stay]) -> tuple[float, float]:
        """(tokens of input, cost in tokens of uncached input) of texts that would not have been sent. Of no request
        more is saved than it had: neither of its tokens, nor of those that no cache had."""
        written, read = Counter[int](), Counter[int]()  # characters by request: without a cache, from a cache
        for stay in stays if self.known else ():
            end = min(stay.end, len(self._requests))
            place = self._requests[stay.first].prompt if stay.first < end else 0
            for number in range(stay.first, end):
                if number in self._cuts:
                    place = 1  # what outlives a cut stands earlier afterwards, nobody knows where
                is_cached = number > stay.first and self._requests[number].cache_read >= place * (1 - NEAR)
                (read if is_cached else written)[number] += stay.chars
        tokens = cost = 0.0
        for number, request in enumerate(self._requests):
            cached = min(read[number] * self._tokens_per_char, request.cache_read)
            most = request.prompt - request.cache_read
            uncached = min(written[number] * self._tokens_per_char, most)
            tokens += cached + uncached
            cost += cached * self.prices.read + (uncached / most * _uncached_cost(request) if most else 0.0)
        return tokens, cost

    def _followers(self) -> list[int]:
        """Requests that go on where the one before them ended."""
        return [i for i in range(1, len(self._requests)) if i not in self._cuts]

    def _calibrate(self) -> None:
        """A line through what the turns say, by medians: a few that a host added to unseen do not matter."""
        for _ in range(ROUNDS):
            turns = sorted(self._followers(), key=lambda i: self._added[i])
            grown = {i: self._requests[i].prompt - self._requests[i - 1].prompt - self._carried_on(i) for i in turns}
            half = len(turns) // 2
            pairs = zip(turns[:half], turns[len(turns) - half :], strict=True)
            apart = [(grown[j] - grown[i], self._added[j] - self._added[i]) for i, j in pairs]
            told = [more / chars for more, chars in apart if chars >= ENOUGH and more > 0]
            self._tokens_per_char = median(told) if told else self._tokens_per_char
            left = [grown[i] - self._tokens_per_char * self._added[i] for i in turns]
            self._a_turn = max(0.0, median(left)) if left else 0.0
        found = [self._requests[i].cache_read / self._requests[i - 1].prompt for i in self._followers()]
        self._reach = min(1.0, median(found)) if found else 1.0

    def _carried_on(self, i: int) -> float:
        """Tokens of the answer before request `i`. Some hosts note the usage before an answer is complete."""
        before = self._requests[i - 1]
        return max(before.output, before.answer * self._tokens_per_char)

    def _cost(self, i: int) -> float:
        request, prices = self._requests[i], self.prices
        return _uncached_cost(request) + prices.read * request.cache_read + prices.output * request.output

    def _reproduced(self, prices: ProviderPrices) -> int:
        """Turns whose cost is met."""
        pairs = [(self._cost(i), self._predicted(i, prices)) for i in self._followers()]
        return sum(abs(guess - cost) <= NEAR * cost for cost, guess in pairs)

    def _predicted(self, i: int, prices: ProviderPrices) -> float:
        """The cost of a request that finds the usual share of the one before it in the cache, and writes the rest."""
        before, request = self._requests[i - 1], self._requests[i]
        answer, new = self._carried_on(i), self._added[i] * self._tokens_per_char + self._a_turn
        kept = before.prompt + (answer if prices.keeps_answers else 0.0)
        read = kept * self._reach
        written = before.prompt + answer + new - read
        return prices.read * read + prices.write * written + prices.output * request.output


def _uncached_cost(request: RequestSent) -> float:
    """Of the tokens of a request that no cache had."""
    return request.fresh + WRITE * request.cache_write + WRITE_HOUR * request.cache_write_hour


def _prices_of(requests: Sequence[RequestSent]) -> ProviderPrices:
    """The prices of the provider with such fields: only Anthropic reports what was written to a cache."""
    minutes, hour = sum(r.cache_write for r in requests), sum(r.cache_write_hour for r in requests)
    if not minutes + hour:
        return OPENAI
    return ANTHROPIC._replace(write=(WRITE * minutes + WRITE_HOUR * hour) / (minutes + hour))
