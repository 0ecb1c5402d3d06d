"""The prices of models, the cost of characters while they are carried, and the cost of requests.

The table `models.json` has a date and a source for each row. The user's own rows take precedence over it. A result is
written to the provider's prompt cache once. Each later call reads it from there, until it leaves the conversation.
`Carried` counts this cost in characters, which every transcript has. `Bill` uses the usage fields of the transcript and
the prices of its model.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from readcache import Policy
from readcache.core.model.errors import UsageError, did_you_mean
from readcache.core.model.policy import Prices
from readcache.core.model.tokens import LEAST_GROWN, UNKNOWN
from readcache.core.model.tool_call import ToolCall
from readcache.transcripts.records import RequestSent

_TABLE = Path(__file__).with_name("models.json")
_REQUIRED = ("input", "read", "write", "output")
# After a model's name: the date of a version, and the suffixes of Bedrock and Claude Code.
_VERSION = r"(?:[-@](?:\d{8}|\d{4}-\d\d-\d\d|latest|preview)|-v\d+(?::\d+)?|\[1m\])*"
USUAL = Policy().prices
ANSWER = 560  # tokens of an answer, including thinking: the median of recorded requests
NEAR = 0.02  # a text counts as cached if the cache reached its position, within this share


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """US dollars for a million tokens: input without a cache, input read from or written to the prompt cache, output.

    `write_hour`: input written to a cache that lasts an hour; None: the same as `write`. `least`: tokens of the
    shortest prompt that is cached. `seconds`: how long a cached prompt is kept after its last use; None: the provider
    promises nothing. If a request has more than `above` tokens, all its input costs `times_input` as much, and all its
    output `times_output` as much. `chars_per_token`: None for the number of the model's family. `date`: the day on
    which the source gave these prices.
    """

    name: str
    input: float
    read: float
    write: float
    output: float
    write_hour: float | None = None
    least: int = 0
    seconds: float | None = None
    above: float | None = None
    times_input: float = 1
    times_output: float = 1
    chars_per_token: float | None = None
    date: str = ""
    source: str = ""

    def cost(
        self, *, fresh: float = 0, written: float = 0, hour: float = 0, read: float = 0, output: float = 0
    ) -> float:
        """Return the cost of one request with these tokens of each kind, in millionths of a dollar."""
        dear = self.above is not None and fresh + written + hour + read > self.above
        to_hour = self.write if self.write_hour is None else self.write_hour
        of_input = fresh * self.input + written * self.write + hour * to_hour + read * self.read
        of_output = output * self.output
        return of_input * self.times_input + of_output * self.times_output if dear else of_input + of_output

    def for_an_hour(self) -> ModelPrices:
        """Return the same prices for a model whose requests all write to a cache that lasts an hour."""
        return replace(self, write=self.write if self.write_hour is None else self.write_hour, seconds=3600.0)

    @property
    def ratios(self) -> Prices:
        """The prices as multiples of uncached input, and the size of an answer in recorded requests."""
        return Prices(self.write / self.input, self.read / self.input, self.output / self.input, answer=ANSWER)

    @property
    def label(self) -> str:
        """The model's name, with the date of the prices."""
        return f"{self.name} ({self.date or 'no date'})"


PriceTable = Mapping[str, ModelPrices]
# If no price is known: the ratios with which a session weighs its omissions. They are not amounts of money.
RATIOS = ModelPrices("", 1.0, USUAL.read, USUAL.write, USUAL.output)


@cache
def built_in_prices() -> PriceTable:
    """Return the price table of this package."""
    return read_prices(str(_TABLE))


def read_prices(path: str) -> PriceTable:
    """Return the rows of a JSON file: model -> fields of `ModelPrices`. `input`, `read`, `write` and `output` are
    required. Raise UsageError, in one line, for anything else."""
    try:
        rows = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as prices: {error}") from error
    if not isinstance(rows, dict) or not rows:
        raise UsageError(f'{path} has no prices: give {{"MODEL": {{"input": 3, "read": 0.3, …}}}}')
    return {name: _row(path, name, row) for name, row in rows.items()}


def _row(path: str, name: str, row: Any) -> ModelPrices:
    known = {field.name: field for field in fields(ModelPrices)[1:]}
    if not isinstance(row, dict) or not row.keys() >= set(_REQUIRED):
        raise UsageError(f"{path}: {name} lacks one of {', '.join(_REQUIRED)}: US dollars for a million tokens")
    for key, value in row.items():
        if key not in known:
            raise UsageError(
                f"{path}: {name} has an unknown field {key!r}{did_you_mean(key, known)}; prices are US dollars"
            )
        is_text = key in ("date", "source")
        is_number = type(value) in (int, float) and 0 <= value < float("inf")
        if not (isinstance(value, str) if is_text else is_number):
            form = "text" if is_text else "number of 0 or more; prices are US dollars"
            raise UsageError(f"{path}: {name}: {key} is {value!r}: give a {form}")
    for key in ("input", "chars_per_token"):
        if row.get(key) == 0:
            raise UsageError(f"{path}: {name}: {key} is 0, and everything is counted in tokens of input")
    return ModelPrices(name, **row)


def prices_of(model: str, table: PriceTable) -> ModelPrices:
    """Return the row of a model that the user named. Raise UsageError, in one line, if there is none."""
    found = find_prices(model, table)
    if found is None:
        known = did_you_mean(model, table) or f": known are {', '.join(table)}"
        raise UsageError(f"--model {model!r} has no prices{known}; readcache replay --prices FILE takes yours")
    return found


def find_prices(model: str, table: PriceTable) -> ModelPrices | None:
    """Return the row of a model by its name in a transcript. The name may have a provider before it and a version after
    it. Return None if the table lacks the model: a model with a similar name may have any price."""
    name = _plain(model)
    for row in sorted(table, key=len, reverse=True):
        if re.fullmatch(rf"(?:.*[^a-z0-9])?{re.escape(_plain(row))}{_VERSION}", name):
            return table[row]
    return None


def _plain(name: str) -> str:
    return name.lower().replace(".", "-")


class _Result(NamedTuple):
    at: int  # the number of its call, from 0
    out: int
    saved: int


class Carried:
    """The results that a conversation carries, and the cost of its removed results, in characters of uncached input.

    `out` and `saved`: the cost of the whole outputs and of the omitted characters. `turns`: the cost of one turn for
    each marked result.
    """

    def __init__(self, prices: Prices = USUAL, chars_per_token: float = UNKNOWN.chars_per_token) -> None:
        self._prices, self._chars_per_token = prices, chars_per_token
        self.out = self.saved = self.turns = 0.0
        self._calls = 0
        self._size = 0
        self._live: dict[str, _Result] = {}

    def add(self, call_id: str, out: int, saved: int, *, marked: bool) -> None:
        """Add a result. `out`: characters of the output. `saved`: characters omitted from it. `marked`: True if the
        omission needed a marker."""
        if marked:
            self.turns += self._chars_per_token * self._prices.of_turn(self._size / self._chars_per_token)
        if call_id in self._live:
            self._end(self._live.pop(call_id))
        self._live[call_id] = _Result(self._calls, out, saved)
        self._calls += 1
        self._size += out - saved

    def trim(self, kept: frozenset[str] = frozenset()) -> None:
        """Remove all results from the conversation, except these."""
        for name in [name for name in self._live if name not in kept]:
            self._end(self._live.pop(name))

    def _end(self, result: _Result) -> None:
        price = self.price(result.at)
        self.out += result.out * price
        self.saved += result.saved * price
        self._size -= result.out - result.saved

    def price(self, at: int) -> float:
        """Return the cost so far of one character of call number `at` (from 0)."""
        return self._prices.while_carried(self._calls - 1 - at)


@dataclass(slots=True)
class _LeftOut:
    """The characters that each policy omitted from a result. `position`: the size in tokens of the first request that
    would have contained them."""

    saved: Mapping[str, int]
    position: float | None = None


class _Sent(NamedTuple):
    """A request, with the characters that each policy omitted from it. `written`: from the input that no cache had.
    `read`: from the cached input."""

    request: RequestSent
    written: Counter[str]
    read: Counter[str]


class Bill:
    """The requests of one conversation, added in order. `prices`: None if the model's prices are unknown.
    `chars_per_token`: of the model, until its turns have been measured."""

    def __init__(self, prices: ModelPrices | None, chars_per_token: float = UNKNOWN.chars_per_token) -> None:
        self._prices, self._chars_per_token = prices, chars_per_token
        self._sent: list[_Sent] = []
        self._live: dict[str, _LeftOut] = {}
        self._sizes: list[float] = []  # tokens of a character, measured in turns
        self._new = 0  # characters added since the last request
        self._is_trimmed = False  # since the last request

    def call(self, call: ToolCall, saved: Mapping[str, int]) -> None:
        """Add a result, which the next request contains. `saved`: the characters that each policy omitted from it."""
        self._new += len(call.output)
        if any(saved.values()):
            self._live[call.call_id] = _LeftOut(dict(saved))

    def trim(self, kept: frozenset[str]) -> None:
        """Remove all results, except these."""
        self._is_trimmed = True
        self._live = {name: left for name, left in self._live.items() if name in kept}
        for left in self._live.values():
            left.position = left.position and 1  # it is earlier in the request now, at an unknown position

    def sent(self, request: RequestSent) -> None:
        """Add a request, with everything that was added since the last one."""
        self._measure(request, self._new + request.added)
        one = _Sent(request, Counter(), Counter())
        for left in self._live.values():
            is_cached = left.position is not None and request.cache_read >= left.position * (1 - NEAR)
            (one.read if is_cached else one.written).update(left.saved)
            left.position = left.position or request.prompt
        self._sent.append(one)
        self._new, self._is_trimmed = 0, False

    def _measure(self, request: RequestSent, added: int) -> None:
        """Measure the tokens of a character, if the request continues the one before it and adds enough characters."""
        if self._sent and not self._is_trimmed and added >= LEAST_GROWN:
            before = self._sent[-1].request
            # Some hosts note the usage before an answer is complete, so `output` may be too small.
            grown = request.prompt - before.prompt - max(before.output, before.answer / self._chars_per_token)
            self._sizes += [grown / added] if grown > 0 else []

    @property
    def money(self) -> float:
        """The cost of all requests in millionths of a dollar. 0 if they have no usage fields, or if the prices are
        unknown."""
        return sum(self._cost(one.request) for one in self._sent)

    def counts(self) -> dict[str, int]:
        """Return counts: `prompt` (tokens of all requests), `bill` (see `money`), `requests`, and `billed_sessions` (1
        if there are requests)."""
        prompt = sum(one.request.prompt for one in self._sent)
        requests = len(self._sent)
        return {"prompt": prompt, "bill": round(self.money), "requests": requests, "billed_sessions": requests > 0}

    def saved(self, policy: str) -> tuple[float, float]:
        """Return the saving of this policy's omissions: (tokens of input, millionths of a dollar). The saving of a
        request has two limits: its cached tokens, and its uncached tokens of input."""
        tokens = money = 0.0
        size = median(self._sizes) if self._sizes else 1 / self._chars_per_token
        for request, written, read in self._sent:
            cached = min(read[policy] * size, request.cache_read)
            most = request.prompt - request.cache_read
            uncached = min(written[policy] * size, most)
            tokens += cached + uncached
            money += self._cost(request) - self._cost(request, 1 - uncached / max(1, most), cached)
        return tokens, money

    def _cost(self, request: RequestSent, left: float = 1.0, less: float = 0.0) -> float:
        """Return the cost of a request, in millionths of a dollar. It has the share `left` of its uncached tokens, and
        `less` fewer cached tokens."""
        if self._prices is None:
            return 0.0
        fresh, written, hour = (left * n for n in (request.fresh, request.cache_write, request.cache_write_hour))
        read = request.cache_read - less
        return self._prices.cost(fresh=fresh, written=written, hour=hour, read=read, output=request.output)
