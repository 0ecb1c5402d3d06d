"""The cost of characters while they are carried, and the cost of requests by a transcript's own fields.

A result is written to the provider's prompt cache once and read from it by each later call, until it leaves the
conversation. `Carried` counts so in characters, for transcripts that say nothing of tokens. `Bill` goes by the
transcript's own fields and its model's prices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from readcache import Policy
from readcache.replay.prices import ModelPrices
from readcache.transcripts.records import RequestSent

CHARS_PER_TOKEN = 4.0  # where no turn tells
# What a session goes by when it weighs an omission: ratios of uncached input, Anthropic's for a cache of five minutes.
_USUAL = Policy().prices
# What a turn costs that a marker provokes, in characters: it reads the prompt again, and what is carried, and answers.
TURN_PROMPT, TURN_OUTPUT = CHARS_PER_TOKEN * _USUAL.prompt, CHARS_PER_TOKEN * _USUAL.output * _USUAL.answer
NEAR = 0.02  # a text counts as cached where the cache reached to it within this share
ENOUGH = 1_000  # characters that a turn must add to tell how many of them make a token


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
            self.turns += _USUAL.read * (TURN_PROMPT + self._size) + TURN_OUTPUT
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
    requests before which something left the conversation. `prices`: None where the model has none that are known."""

    def __init__(
        self, requests: Sequence[RequestSent], added: Sequence[int], cuts: frozenset[int], prices: ModelPrices | None
    ) -> None:
        self._requests = [request for request in requests if request.prompt]
        self.known = len(self._requests) == len(requests) > 0
        self._prices, self._cuts = prices, cuts
        self._tokens_per_char = self._told_size(added) if self.known else 1 / CHARS_PER_TOKEN

    @property
    def priced(self) -> bool:
        """True if the transcript says what was billed, and what a token costs is known."""
        return self.known and self._prices is not None

    @property
    def money(self) -> float:
        """Millionths of a dollar for all requests; 0 where it is not priced."""
        return sum(map(self._cost, self._requests)) if self.known else 0.0

    def counts(self) -> dict[str, int]:
        """`prompt` (tokens of all requests), `bill` (see `money`), `requests`."""
        if not self.known:
            return {}
        prompt = sum(request.prompt for request in self._requests)
        return {"prompt": prompt, "bill": round(self.money), "requests": len(self._requests)}

    def saved(self, stays: Sequence[Stay]) -> tuple[float, float]:
        """(tokens of input, millionths of a dollar) of texts that would not have been sent. Of no request more is saved
        than it had: neither of its tokens, nor of those that no cache had."""
        written, read = Counter[int](), Counter[int]()  # characters by request: without a cache, from a cache
        for stay in stays if self.known else ():
            end = min(stay.end, len(self._requests))
            place = self._requests[stay.first].prompt if stay.first < end else 0
            for number in range(stay.first, end):
                if number in self._cuts:
                    place = 1  # what outlives a cut stands earlier afterwards, nobody knows where
                is_cached = number > stay.first and self._requests[number].cache_read >= place * (1 - NEAR)
                (read if is_cached else written)[number] += stay.chars
        tokens = money = 0.0
        for number, request in enumerate(self._requests):
            cached = min(read[number] * self._tokens_per_char, request.cache_read)
            most = request.prompt - request.cache_read
            uncached = min(written[number] * self._tokens_per_char, most)
            left = 1 - uncached / most if most else 1.0
            tokens += cached + uncached
            money += self._cost(request) - self._cost(request, left, cached)
        return tokens, money

    def _told_size(self, added: Sequence[int]) -> float:
        """Tokens of a character, by what the turns that go on from the one before them added. Some hosts note the usage
        before an answer is complete."""
        told = []
        for i in range(1, len(self._requests)):
            before = self._requests[i - 1]
            answer = max(before.output, before.answer / CHARS_PER_TOKEN)
            grown = self._requests[i].prompt - before.prompt - answer
            if i not in self._cuts and added[i] >= ENOUGH and grown > 0:
                told.append(grown / added[i])
        return median(told) if told else 1 / CHARS_PER_TOKEN

    def _cost(self, request: RequestSent, left: float = 1.0, less: float = 0.0) -> float:
        """Millionths of a dollar for a request with this share of its uncached tokens, and so many cached ones less."""
        if self._prices is None:
            return 0.0
        fresh, written, hour = (left * n for n in (request.fresh, request.cache_write, request.cache_write_hour))
        read = request.cache_read - less
        return self._prices.cost(fresh=fresh, written=written, hour=hour, read=read, output=request.output)
