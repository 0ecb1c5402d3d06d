"""Ways of keeping a conversation: what each of them costs, and what the agent would have missed.

A conversation is a cache. What the agent needed of it is proven by what it did: the old lines of an edit, the lines
that it read again, the names that it copied. It is taken to do as it did, however the conversation is shortened. An
edit with an old line that stands nowhere any more costs one more turn, in which the results with such lines come back.

Tokens are a quarter of the characters. Each request writes what is new to the prompt cache and reads the rest from it.
After a change everything behind it is written anew.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from readcache.model.errors import UsageError, did_you_mean
from readcache.replay.prices import ModelPrices
from readcache.replay.rereads import RUN, SHORTEST
from readcache.transcripts.claude_code import bare
from readcache.transcripts.records import HistoryCut, RecordedCall

# Sizes in tokens, as recorded sessions have them.
BASE = 8_000  # instructions and tools
CALL = 30  # a call beside its arguments
NOTE = 15  # what stands in place of a cleared result
ASK = 60  # the answer in which the agent asks for something again
SUMMARY, RESTORED = 2_000, 10_000  # after a compaction
LONG = 100_000  # conversations that may be worth shortening
KEPT = 2  # newest results that are never cleared
_SMALLEST = {"clear": 100, "mask": NOTE}  # results of no more tokens are not cleared

ALWAYS = ("none", "recorded")  # what the others are compared with
DEFAULT_WAYS = (*ALWAYS, "compact:160k", "clear:160k:60k", "clear:100k:60k", "mask:10")
_SIZES = {"none": 0, "recorded": 0, "compact": 1, "clear": 2, "mask": 1}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{5,}")


class Keeping(NamedTuple):
    """`none`: nothing leaves. `recorded`: what the host did. `compact`: at `above` tokens all gives way to a summary.
    `clear`: at `above` tokens the oldest results are cleared until `down_to` are left. `mask`: only the last `above`
    results stand."""

    kind: str
    above: int = 0
    down_to: int = 0


def parse_way(spec: str) -> Keeping:
    """`clear:160k:60k`. UsageError for what makes no sense."""
    kind, *sizes = spec.split(":")
    numbers = [re.fullmatch(r"(\d{1,9})(k?)", size) for size in sizes]
    if len(sizes) != _SIZES.get(kind) or not all(numbers):
        near = "" if kind in _SIZES else did_you_mean(kind, _SIZES)
        forms = "none, recorded, compact:N, clear:N:M (in tokens, such as clear:160k:60k) or mask:RESULTS"
        raise UsageError(f"unknown --conversation {spec!r}{near}: use {forms}")
    way = Keeping(kind, *(int(found[1]) * (1000 if found[2] else 1) for found in numbers if found))
    if kind == "compact" and way.above <= BASE + SUMMARY + RESTORED:
        raise UsageError(f"--conversation {spec!r}: {BASE + SUMMARY + RESTORED:,} tokens stay after a compaction")
    if kind == "mask" and not way.above:
        raise UsageError(f"--conversation {spec!r} leaves no result to the model that asked for it")
    if kind == "clear" and way.down_to > way.above:
        raise UsageError(f"--conversation {spec!r} clears from {way.above:,} tokens up to {way.down_to:,}")
    return way


class _Turn(NamedTuple):
    """A call, however the conversation is kept."""

    said: int  # tokens
    needed: list[str]  # old lines of an edit that a result had shown
    copied: list[str]  # names that it wrote and a result had shown
    again: int | None  # the call whose lines it read again
    after_pause: bool  # of more than the cache holds for


class Conversations:
    """One recorded conversation, kept in several ways at once. Calls have numbers, from 0."""

    def __init__(self, ways: Sequence[str], prices: ModelPrices) -> None:
        self.shown: dict[str, list[int]] = {}  # a line -> the calls whose results had it
        self.named: dict[str, list[int]] = {}  # the same of a name
        self.wrote: dict[str, int] = {}  # a line -> the last call in which the agent wrote it
        self.wrote_name: dict[str, int] = {}
        self.sizes: list[tuple[int, int]] = []  # tokens of each call: what the agent said, the result
        self._prices = prices
        specs = dict.fromkeys((*ALWAYS, *ways)) if ways else ()
        self._kept = {spec: _Kept(parse_way(spec), prices, self) for spec in specs}
        self._numbers: dict[str, int] = {}
        self._before: float | None = None  # when the last result came

    def call(self, call: RecordedCall, *, is_read: bool) -> None:
        """The next call."""
        if not self._kept:
            return
        lines = _lines_of(call.output)
        turn = _Turn(
            _said_in(call),
            [line for line in _lines_of(call.replaced) if line in self.shown],
            [name for name in set(_NAME.findall(call.said)) if name in self.named],
            self._read_again(lines) if is_read else None,
            self._paused(call.at),
        )
        for kept in self._kept.values():
            kept.turn(turn)
        self._add(call, lines, turn.said)
        for kept in self._kept.values():
            kept.add(stands=True)
            kept.shorten()

    def _add(self, call: RecordedCall, lines: Iterable[str], said: int) -> None:
        number = self._numbers[call.call_id] = len(self.sizes)
        self.sizes.append((said, _tokens(len(call.output))))
        for line in lines:
            self.shown.setdefault(line, []).append(number)
        for name in set(_NAME.findall(call.output)):
            self.named.setdefault(name, []).append(number)
        self.wrote.update(dict.fromkeys(_lines_of(call.said.replace("\n+", "\n")), number))
        self.wrote_name.update(dict.fromkeys(_NAME.findall(call.said), number))

    def _read_again(self, lines: set[str]) -> int | None:
        """The call that had most of these lines, if half of them were known."""
        known = Counter(self.shown[line][-1] for line in lines if line in self.shown)
        if known.total() < RUN or 2 * known.total() < len(lines):
            return None
        return max(known.items(), key=lambda item: (item[1], item[0]))[0]

    def _paused(self, at: float | None) -> bool:
        before, self._before = self._before, at
        seconds = self._prices.seconds
        return None not in (before, at, seconds) and at - before > seconds  # type: ignore[operator]

    def cut(self, cut: HistoryCut) -> None:
        """The host took calls out, and showed some by itself. What it restored after a compaction only stands where
        that had taken it away."""
        if not self._kept:
            return
        kept_numbers = sorted(self._numbers[name] for name in cut.kept if name in self._numbers)
        for kept in self._kept.values():
            if kept.way.kind == "recorded":
                kept.cut(kept_numbers, compacts=cut.compacts)
        for call in cut.restored:
            self._add(call, _lines_of(call.output), 0)
            for kept in self._kept.values():
                kept.add(stands=kept.way.kind == "recorded" or not cut.compacts)

    def end(self) -> dict[str, Counter[str]]:
        """What each way came to; `bill` and what is a part of it in tokens of uncached input."""
        return {spec: kept.end() for spec, kept in self._kept.items()}


class _Kept:
    """A conversation that is kept in one way: what stands in it, what of it is cached, what it has cost."""

    def __init__(self, way: Keeping, prices: ModelPrices, told: Conversations) -> None:
        self.way = way
        self.counts: Counter[str] = Counter()
        self._prices, self._told = prices, told
        self._stands: list[bool] = []
        self._clearable: list[int] = []  # the numbers of results, as a heap
        self._first = 0  # the first call since the last compaction
        self._size, self._cached = BASE, 0
        self._bill = self._expired = 0.0

    def turn(self, turn: _Turn) -> None:
        """The model is asked, and makes a call."""
        told, counts = self._told, self.counts
        if turn.after_pause:
            self._expired += self._cost(written=self._cached) - self._cost(read=self._cached)
            self._cached = 0
        self._request(turn.said)
        needed = [line for line in turn.needed if told.wrote.get(line, -1) < self._first]
        gone = [line for line in needed if not self._sees(told.shown[line])]
        if gone:
            self._request(ASK)
            for number in {told.shown[line][-1] for line in gone}:
                self._put_back(number)
        copied = [name for name in turn.copied if told.wrote_name.get(name, -1) < self._first]
        counts.update(expiries=turn.after_pause, turns=1 + bool(gone), needs=bool(needed), missed=bool(gone))
        counts["names"] += len(copied)
        counts["names_missed"] += sum(not self._sees(told.named[name]) for name in copied)
        if turn.again is not None:
            counts.update(rereads=1, rereads_missed=not self._stands[turn.again])

    def add(self, *, stands: bool) -> None:
        """The newest call of all that were told, if this conversation has it."""
        self._stands.append(False)
        if stands:
            self._size += self._told.sizes[-1][0]
            self._put_back(len(self._stands) - 1)

    def _put_back(self, number: int) -> None:
        if not self._stands[number]:
            out = self._told.sizes[number][1]
            self._stands[number] = True
            self._size += out
            if out > _SMALLEST.get(self.way.kind, out):
                heappush(self._clearable, number)

    def _sees(self, numbers: Sequence[int]) -> bool:
        return any(self._stands[number] for number in reversed(numbers))

    def _request(self, output: int) -> None:
        self._bill += self._cost(read=self._cached, written=self._size - self._cached, output=output)
        self.counts["carried"] += self._size
        self._cached = self._size if self._size >= self._prices.least else 0

    def _cost(self, **tokens: float) -> float:
        return self._prices.cost(**tokens) / self._prices.input

    def end(self) -> Counter[str]:
        """What it came to."""
        self.counts.update(bill=round(self._bill), bill_expired=round(self._expired))
        return self.counts

    def shorten(self) -> None:
        """After a turn."""
        kind, above, down_to = self.way
        if kind == "mask":
            self._clear(len(self._stands) - above, 0)
        elif kind == "clear" and self._size > above:
            self._clear(len(self._stands) - KEPT, down_to)
        elif kind == "compact" and self._size > above:
            self._compact()

    def _clear(self, end: int, down_to: int) -> None:
        """Results give way, the oldest first, of the calls before number `end`. What follows is written anew."""
        size, first = self._size, self._clearable[0] if self._clearable else end
        while self._clearable and self._clearable[0] < end and self._size > down_to:
            number = heappop(self._clearable)
            self._stands[number] = False
            self._size -= self._told.sizes[number][1] - NOTE
        if self._size < size:
            behind = sum(map(self._carried_of, range(first, len(self._stands))))
            before = self._size - behind
            again = max(0, self._cached - (size - self._size) - before)
            self.counts.update(shortened=1, rewritten=again)
            self._cached = min(self._cached, before)

    def _carried_of(self, number: int) -> int:
        said, out = self._told.sizes[number]
        return said + (out if self._stands[number] else NOTE)

    def _compact(self) -> None:
        self._request(SUMMARY)  # it is asked for behind the conversation
        self._drop()
        self._first = len(self._stands)
        self._size += SUMMARY + RESTORED
        self.counts.update(shortened=1, rewritten=SUMMARY + RESTORED)

    def _drop(self) -> None:
        self._stands = [False] * len(self._stands)
        self._clearable.clear()
        self._size = self._cached = BASE

    def cut(self, kept: Sequence[int], *, compacts: bool) -> None:
        """All but these calls leave, by a compaction or because somebody went back."""
        if compacts:
            self._compact()
        else:
            self._drop()
        for number in kept:
            self._size += self._told.sizes[number][0]
            self._put_back(number)
        self._cached = self._cached if compacts else self._size


def _tokens(chars: int) -> int:
    return (chars + 3) // 4


def _said_in(call: RecordedCall) -> int:
    """Tokens of a call."""
    return _tokens(call.arguments or len(call.said)) + CALL


def _lines_of(text: str) -> set[str]:
    """The lines that tell anything, as they stand and without the number in front."""
    lines = text.splitlines()
    found = {line.strip() for line in lines} | {bare(line).strip() for line in lines}
    return {line for line in found if len(line) >= SHORTEST}


def tokens_of(calls: Iterable[RecordedCall]) -> int:
    """Of a conversation in which nothing was shortened."""
    return BASE + sum(_tokens(len(call.output)) + _said_in(call) for call in calls)
