"""A conversation under one strategy: its contents, the part of them that is cached, and its cost so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate
from typing import Literal, NamedTuple

from readcache.report.replay.bills import ModelPrices

# Sizes in tokens, from recorded sessions.
BASE = 8_000  # instructions and tools, if the host was not measured
CALL = 30  # a call, without its arguments
NOTE = 15  # the note that replaces a cleared result
PREVIEW = 165  # the note of Gemini CLI: 500 characters of the result, and where all of it is
ASK = 60  # the answer in which the agent requests something again
SUMMARY, RESTORED = 2_000, 10_000  # after a compaction
KEPT = 2  # newest results that are never cleared
EDIT_KEPT = 3  # newest results that Anthropic's context editing never clears
COUNTS = (
    *("carried", "turns", "shortened", "rewritten", "needs", "missed", "rereads", "rereads_missed"),
    *("names", "names_missed", "expiries"),
)
_SMALLEST = {"clear": 100, "mask": NOTE, "edit": NOTE, "prune": PREVIEW}  # only longer results are cleared


class Strategy(NamedTuple):
    """A rule that shortens a conversation.

    `none`: nothing is removed. `recorded`: the same removals as in the host. `compact`: above `above` tokens, a summary
    replaces everything. `clear`: above `above` tokens, the oldest results are cleared until `down_to` tokens are left,
    as by `readcache.context.clear`: not if everything else has more than `down_to` tokens, unless that is 0.
    `mask`: only the last `above` results stay. `edit`: only the last `EDIT_KEPT` results stay, in each request after
    the whole conversation had more than `above` tokens. `prune`: results older than the newest `above` tokens of
    results are removed once they have `down_to` tokens.
    """

    kind: str
    above: int = 0
    down_to: int = 0


class Turn(NamedTuple):
    """A recorded call. It is the same under every strategy."""

    said: int  # tokens
    needed: list[str]  # old lines of an edit that an earlier result had shown
    copied: list[str]  # names that it wrote and that an earlier result had shown
    again: int | None  # the call whose lines it read again; None if there is none
    after_pause: bool  # the pause before it was longer than a cache lasts


class Sent(NamedTuple):
    """A shortened result as the model was sent it: its tokens, lines and names, and the lines omitted from it."""

    tokens: int
    lines: set[str]
    names: set[str]
    lacks: set[str]


@dataclass(slots=True)
class RecordedFacts:
    """Facts about all calls of a conversation. The calls have numbers from 0."""

    shown: dict[str, list[int]] = field(default_factory=dict)  # a line -> the calls whose results contained it
    named: dict[str, list[int]] = field(default_factory=dict)  # a name -> the calls whose results contained it
    wrote: dict[str, int] = field(default_factory=dict)  # a line -> the last call in which the agent wrote it
    wrote_name: dict[str, int] = field(default_factory=dict)
    sizes: list[tuple[int, int]] = field(default_factory=list)  # tokens of each call: the agent's text, the result
    base: int = BASE  # tokens of instructions and tools


class ConversationSim:
    """A recorded conversation under one strategy. For each call: `turn`, add the call to `facts`, `add`, `shorten`."""

    def __init__(self, strategy: Strategy, prices: ModelPrices, facts: RecordedFacts) -> None:
        self.strategy = strategy
        self.counts = Counter(dict.fromkeys(COUNTS, 0))
        self._prices, self._facts = prices, facts
        self._present: list[bool] = []
        self._sent: dict[int, Sent] = {}
        self._clearable: list[tuple[int, int]] = []  # a heap of results: how new they are, and their numbers
        self._newer: dict[int, int] = {}  # results that count as new as a marker that names them
        self._first = 0  # the first call since the last compaction
        self._is_shorter = False  # something was removed
        self._size, self._cached, self._unshortened = facts.base, 0, facts.base
        self._bill = self._expired = 0.0

    @property
    def size(self) -> int:
        """The tokens of the conversation."""
        return self._size

    def correct(self, tokens: int) -> None:
        """Add tokens that no call has: the provider counted so many more than we did. A negative number: fewer."""
        self._size = max(0, self._size + tokens)
        self._cached = min(self._cached, self._size)
        self._unshortened += tokens

    def turn(self, turn: Turn) -> None:
        """Send a request to the model, which answers with this call."""
        facts, counts = self._facts, self.counts
        if turn.after_pause:
            self._expired += self._cost(written=self._cached) - self._cost(read=self._cached)
            self._cached = 0
        self._request(turn.said)
        needed = [line for line in turn.needed if facts.wrote.get(line, -1) < self._first]
        gone = [line for line in needed if not self._sees(line)]
        if gone:
            self._request(ASK)
            for number in {facts.shown[line][-1] for line in gone}:
                self._show_again(number)
        copied = [name for name in turn.copied if facts.wrote_name.get(name, -1) < self._first]
        counts.update(expiries=turn.after_pause, turns=1 + bool(gone), needs=bool(needed), missed=bool(gone))
        counts["names"] += len(copied)
        counts["names_missed"] += sum(not self._sees_name(name) for name in copied)
        if turn.again is not None:
            counts.update(rereads=1, rereads_missed=not self._present[turn.again])

    def add(self, sent: Sent | None = None, *, is_present: bool) -> None:
        """Add the newest call of `facts`. `is_present`: True if this conversation contains it. `sent`: the shortened
        result, which is used if each line that it lacks is still visible; otherwise the whole result is used."""
        number = len(self._present)
        self._present.append(False)
        if not is_present:
            return
        if sent is not None and (agreed := self._agreed(sent)):
            self._sent[number] = agreed
            if self.strategy.kind == "clear":  # `readcache.context.clear` keeps the source of a marker
                self._newer |= {n: number for x in sent.lacks if (n := self._source(x)) is not None}
        self._size += self._facts.sizes[-1][0]
        self._unshortened += self._facts.sizes[-1][0] + self._out(number)
        self._put_back(number)

    def _agreed(self, sent: Sent) -> Sent | None:
        """Return the result that the preset would have sent in this conversation; None if it would have sent all of
        it."""
        wrote = self._facts.wrote
        # Until something is removed without the preset's knowledge, each omitted line is where its marker says. The
        # simulation does not find a line that has another text before it there.
        unseen = {x for x in sent.lacks if wrote.get(x, -1) < self._first and not self._sees(x)}
        if unseen and self._is_shorter and self.strategy.kind != "recorded":
            return None
        return sent._replace(lines=sent.lines | unseen) if unseen else sent

    def _out(self, number: int) -> int:
        """Return the tokens of a result while it is present."""
        sent = self._sent.get(number)
        return self._facts.sizes[number][1] if sent is None else sent.tokens

    def _put_back(self, number: int) -> None:
        if not self._present[number]:
            self._present[number] = True
            out = self._out(number)
            self._size += out
            if out > _SMALLEST.get(self.strategy.kind, out):
                heappush(self._clearable, (number, number))

    def _show_again(self, number: int) -> None:
        """Show the whole result again, at the end."""
        sent = self._sent.pop(number, None)
        if sent is not None and self._present[number]:
            self._present[number] = False
            self._size -= sent.tokens
        self._put_back(number)

    def _source(self, line: str) -> int | None:
        """Return the newest result that shows the line; None if there is none."""
        return next((n for n in reversed(self._facts.shown[line]) if self._shows(n, line, "lines")), None)

    def _sees(self, line: str) -> bool:
        return self._source(line) is not None

    def _sees_name(self, name: str) -> bool:
        return any(self._shows(number, name, "names") for number in reversed(self._facts.named[name]))

    def _shows(self, number: int, text: str, what: Literal["lines", "names"]) -> bool:
        return self._present[number] and (number not in self._sent or text in getattr(self._sent[number], what))

    def _request(self, output: int) -> None:
        self._bill += self._cost(read=self._cached, written=self._size - self._cached, output=output)
        self.counts["carried"] += self._size
        self._cached = self._size if self._size >= self._prices.least else 0

    def _cost(self, **tokens: float) -> float:
        return self._prices.cost(**tokens) / self._prices.input

    def end(self) -> Counter[str]:
        """Return the totals."""
        self.counts.update(bill=round(self._bill), bill_expired=round(self._expired))
        return self.counts

    def shorten(self) -> None:
        """Shorten the conversation after a turn, if the strategy requires it."""
        kind, above, down_to = self.strategy
        if kind == "mask":
            self._clear(len(self._present) - above, 0)
        elif kind == "edit" and self._unshortened > above:
            self._clear(len(self._present) - EDIT_KEPT, 0)
        elif kind == "clear" and self._size > above and (not down_to or self._fixed() <= down_to):
            self._clear(len(self._present) - KEPT, down_to)
        elif kind == "prune":
            self._prune(above, down_to)
        elif kind == "compact" and self._size > above:
            self._compact()

    def _clear(self, end: int, down_to: int) -> None:
        """Clear results of the calls before number `end`, the oldest first, until `down_to` tokens are left."""
        size, gone = self._size, []
        while self._clearable and self._clearable[0][0] < end and self._size > down_to:
            known, number = heappop(self._clearable)
            if (newer := self._newer.get(number, number)) > known:
                heappush(self._clearable, (newer, number))
            elif self._present[number]:
                self._take(number)
                gone.append(number)
        self._rewrite(gone, size)

    def _fixed(self) -> int:
        """Return the tokens that no clearing removes: everything except results and the notes of cleared ones."""
        present = [number for number, is_present in enumerate(self._present) if is_present]
        return self._size - sum(map(self._out, present)) - NOTE * (len(self._present) - len(present))

    def _prune(self, protected: int, least: int) -> None:
        """Remove the results older than the newest `protected` tokens of results, if they have `least` tokens. The
        result of the newest call stays, and is not counted."""
        size, last = self._size, len(self._present) - 1
        newest = sorted({number for _, number in self._clearable if self._present[number]} - {last}, reverse=True)
        sizes = list(map(self._out, newest))
        gone = [number for number, total in zip(newest, accumulate(sizes), strict=True) if total > protected]
        if sum(map(self._out, gone)) >= least:
            for number in gone:
                self._take(number)
            self._clearable = [entry for entry in sorted(self._clearable) if self._present[entry[1]]]
            self._rewrite(gone, size)

    def _take(self, number: int) -> None:
        self._present[number] = False
        self._size -= self._out(number) - self._note

    def _rewrite(self, gone: Sequence[int], size: int) -> None:
        """Write everything after the removed results `gone` to the cache again. `size`: tokens before the removal."""
        if gone:
            self._is_shorter = True
            behind = sum(map(self._carried_of, range(min(gone), len(self._present))))
            before = self._size - behind
            again = max(0, self._cached - (size - self._size) - before)
            self.counts.update(shortened=1, rewritten=again)
            self._cached = min(self._cached, before)

    @property
    def _note(self) -> int:
        return PREVIEW if self.strategy.kind == "prune" else NOTE

    def _carried_of(self, number: int) -> int:
        return self._facts.sizes[number][0] + (self._out(number) if self._present[number] else self._note)

    def _compact(self) -> None:
        self._request(SUMMARY)  # the request for the summary follows the conversation
        self._drop()
        self._first = len(self._present)
        self._size += SUMMARY + RESTORED
        self.counts.update(shortened=1, rewritten=SUMMARY + RESTORED)

    def _drop(self) -> None:
        self._present, self._is_shorter = [False] * len(self._present), True
        self._clearable.clear()
        self._size = self._cached = self._facts.base

    def trim(self, kept: Sequence[int], *, compacts: bool) -> None:
        """Remove all calls except these, because of a compaction or because somebody went back."""
        if compacts:
            self._compact()
        else:
            self._drop()
        for number in kept:
            self._size += self._facts.sizes[number][0]
            self._put_back(number)
        self._cached = self._cached if compacts else self._size
