"""Strategies for a conversation: the cost of each, and the text that the agent would have missed.

A conversation is a cache. The agent's actions prove which parts of it the agent needed: the old lines of an edit, the
lines that it read again, the names that it copied. The simulation assumes the same actions under every strategy. If an
old line of an edit is no longer in the conversation, the edit costs one more turn. In this turn, the results with such
lines come back.

The provider counted the size of each request, if the transcript has its usage fields. Otherwise, and for single
results, `core.model.tokens` counts. Each request writes its new part to the prompt cache, and reads the rest from it.
After a change, everything that follows is written again.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from readcache.core.model.errors import UsageError, did_you_mean
from readcache.core.model.tokens import LEAST_GROWN, UNKNOWN, ConversationTokens, CountByChars, instructions_of
from readcache.core.model.tool_call import ToolCall
from readcache.report.replay.bills import ModelPrices
from readcache.report.replay.conversation_sim import (
    BASE,
    CALL,
    RESTORED,
    SUMMARY,
    ConversationSim,
    RecordedFacts,
    Sent,
    Strategy,
    Turn,
)
from readcache.report.replay.policy_run import RUN, SHORTEST
from readcache.transcripts.records import HistoryRemoval, Item, RequestSent
from readcache.transcripts.tools import bare
from readcache.transcripts.values import chars_in

LONG = 160_000  # tokens of conversations that are worth shortening: 13 % of them had 56 % of the recorded bills
MOST_BASE = 2  # times the host's usual instructions: a longer first request has text of an earlier conversation

RECORDED = "recorded"  # what the host itself did
ALWAYS = ("none", RECORDED)  # the other strategies are compared with these
RULES = {  # rules of other products, with their defaults
    "anthropic": Strategy("edit", 100_000),
    "gemini-cli": Strategy("prune", 50_000, 30_000),
}
_TRIED = ("compact:200k", "compact:160k", "clear:200k:80k", "clear:160k:120k", "clear:160k:60k")
DEFAULT_STRATEGIES = (*ALWAYS, *_TRIED, *RULES)
_SIZES = {"none": 0, "recorded": 0, "compact": 1, "clear": 2, "mask": 1}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{5,}")


def parse_strategy(spec: str) -> Strategy:
    """Return the strategy of a spec, such as `clear:160k:60k` or the name of another product's rule. Raise UsageError
    if the spec is invalid."""
    if spec in RULES:
        return RULES[spec]
    kind, *sizes = spec.split(":")
    numbers = [re.fullmatch(r"(\d{1,9})(k?)", size) for size in sizes]
    if len(sizes) != _SIZES.get(kind) or not all(numbers):
        near = "" if kind in _SIZES else did_you_mean(kind, (*_SIZES, *RULES))
        forms = "none, recorded, compact:N, clear:N:M (tokens: clear:160k:60k), mask:RESULTS, " + ", ".join(RULES)
        raise UsageError(f"unknown --conversation {spec!r}{near}: use {forms}")
    strategy = Strategy(kind, *(int(found[1]) * (1000 if found[2] else 1) for found in numbers if found))
    if kind == "compact" and strategy.above <= BASE + SUMMARY + RESTORED:
        raise UsageError(f"--conversation {spec!r}: {BASE + SUMMARY + RESTORED:,} tokens stay after a compaction")
    if kind == "mask" and not strategy.above:
        raise UsageError(f"--conversation {spec!r} leaves no result to the model that asked for it")
    if kind == "clear" and strategy.above <= BASE:
        raise UsageError(f"--conversation {spec!r}: {BASE:,} tokens of instructions and tools always stand")
    if kind == "clear" and strategy.down_to > strategy.above:
        raise UsageError(f"--conversation {spec!r} clears from {strategy.above:,} tokens up to {strategy.down_to:,}")
    return strategy


class Sending(NamedTuple):
    """The texts that a preset sends of a result: with the removals of the recorded host, and without any removal."""

    recorded: str
    whole: str


# The counts of each strategy, by its spec and the name of a preset: "" for none.
StrategyCounts = dict[tuple[str, str], Counter[str]]
NOTHING: Mapping[str, Sending] = MappingProxyType({})


class Conversations:
    """One recorded conversation under several strategies in parallel, each without a preset and with each preset.

    `chars_per_token`: of the model. `host`: the harness, whose instructions every request has.
    """

    def __init__(
        self,
        strategies: Sequence[str],
        prices: ModelPrices,
        presets: Sequence[str] = (),
        *,
        chars_per_token: float = UNKNOWN.chars_per_token,
        host: str = "",
    ) -> None:
        self._prices, self._facts = prices, RecordedFacts(base=instructions_of(host, BASE))
        self._count = CountByChars(chars_per_token)
        self._measured = ConversationTokens(least=LEAST_GROWN / chars_per_token)
        self._counted = 0  # tokens of the recorded conversation by our count, without the text that nobody recorded
        self._size: int | None = self._facts.base  # its tokens; None after a removal, until the next request
        specs = dict.fromkeys((*ALWAYS, *strategies)) if strategies else ()
        each = ((spec, preset) for spec in specs for preset in ("", *presets))
        self._sims = {one: ConversationSim(parse_strategy(one[0]), prices, self._facts) for one in each}
        self._numbers: dict[str, int] = {}
        self._before: float | None = None  # time of the last result

    def call(self, call: ToolCall, sent: Mapping[str, Sending] = NOTHING, *, is_read: bool) -> None:
        """Add the next call. `sent`: the texts that each preset would have sent instead of the output. `is_read`: True
        if the call showed lines of files."""
        if not self._sims:
            return
        lines, names = _lines_of(call.output), set(_NAME.findall(call.output))
        turn = Turn(
            _said_in(call, self._count),
            [line for line in _lines_of(call.replaced) if line in self._facts.shown],
            [name for name in set(_NAME.findall(call.said)) if name in self._facts.named],
            self._read_again(lines) if is_read else None,
            self._paused(call.at),
        )
        for kept in self._sims.values():
            kept.turn(turn)
        self._add(call, lines, names, turn.said)
        self._counted += self._count.of_chars(len(call.output))
        texts = {text: self._shortened(text, lines) for both in sent.values() for text in both if text != call.output}
        for (spec, preset), kept in self._sims.items():
            both = sent.get(preset)
            kept.add(both and texts.get(both.recorded if spec == "recorded" else both.whole), is_present=True)
            kept.shorten()

    def _add(self, call: ToolCall, lines: Iterable[str], names: Iterable[str], said: int) -> None:
        facts = self._facts
        number = self._numbers[call.call_id] = len(facts.sizes)
        facts.sizes.append((said, self._tokens(len(call.output))))
        self._size = self._size and self._size + sum(facts.sizes[-1])
        for line in lines:
            facts.shown.setdefault(line, []).append(number)
        for name in names:
            facts.named.setdefault(name, []).append(number)
        facts.wrote.update(dict.fromkeys(_lines_of(call.said.replace("\n+", "\n")), number))
        facts.wrote_name.update(dict.fromkeys(_NAME.findall(call.said), number))

    def _tokens(self, chars: int) -> int:
        """Return the tokens of a result: by this conversation's own turns, if enough of them were measured."""
        return math.ceil(self._measured.ratio * chars / self._count.chars_per_token)

    def _shortened(self, text: str, lines: set[str]) -> Sent:
        """Return the shortened result of an output with these lines. `text`: the text that was sent."""
        left = _lines_of(text)
        return Sent(self._tokens(len(text)), left, set(_NAME.findall(text)), lines - left)

    def _read_again(self, lines: set[str]) -> int | None:
        """Return the call that was the last to show most of these lines; of several such calls, the newest one. Return
        None if fewer than half of the lines, or fewer than `RUN`, were known."""
        shown = self._facts.shown
        known = Counter(shown[line][-1] for line in lines if line in shown)
        if known.total() < RUN or 2 * known.total() < len(lines):
            return None
        return max(known.items(), key=lambda item: (item[1], item[0]))[0]

    def _paused(self, at: float | None) -> bool:
        before, self._before = self._before, at
        seconds = self._prices.seconds
        return None not in (before, at, seconds) and at - before > seconds  # type: ignore[operator]

    def sent(self, request: RequestSent) -> None:
        """Follow a request of the recorded host. The provider counted its tokens, so each size is corrected by what we
        counted too many or too few since the request before it."""
        if not self._sims or not request.prompt:
            return
        of_recorded = request.prompt - self._sims[RECORDED, ""].size
        of_others = 0 if self._size is None else request.prompt - self._size
        for kept in self._sims.values():
            kept.correct(of_recorded if kept.strategy.kind == RECORDED else of_others)
        typed = self._count.of_chars(request.added)
        if not self._counted:
            self._facts.base = max(0, min(request.prompt - typed, MOST_BASE * self._facts.base))
        self._size, self._counted = request.prompt, self._counted + typed
        self._measured.sent(request.prompt, self._counted)
        self._counted += self._count.of_chars(request.answer)

    def trim(self, removal: HistoryRemoval) -> None:
        """Follow a removal by the host, and add the calls that the host then showed again by itself."""
        if not self._sims:
            return
        self._measured.restart()
        self._size = None
        kept_numbers = sorted(self._numbers[name] for name in removal.kept if name in self._numbers)
        for kept in self._sims.values():
            if kept.strategy.kind == "recorded":
                kept.trim(kept_numbers, compacts=removal.compacts)
        for call in removal.restored:
            self._add(call, _lines_of(call.output), set(_NAME.findall(call.output)), 0)
            # Only the recorded strategy had that compaction, so only there the host restored the call.
            for kept in self._sims.values():
                kept.add(is_present=kept.strategy.kind == "recorded" or not removal.compacts)

    def end(self) -> StrategyCounts:
        """Return the totals of each strategy, without a preset and with each. `bill` and its parts are in tokens of
        uncached input."""
        return {name: kept.end() for name, kept in self._sims.items()}


def _said_in(call: ToolCall, count: CountByChars) -> int:
    """Return the tokens of a call."""
    return count.of_chars(len(call.said) if call.arguments is None else chars_in(call.arguments)) + CALL


def _lines_of(text: str) -> set[str]:
    """Return the lines of at least `SHORTEST` characters, with and without the number before them."""
    lines = text.splitlines()
    found = {line.strip() for line in lines} | {bare(line).strip() for line in lines}
    return {line for line in found if len(line) >= SHORTEST}


def largest_size(items: Iterable[Item], chars_per_token: float, host: str = "") -> int:
    """Return the largest size in tokens that a conversation reached. If the provider counted none of its requests,
    return its size by our count, with nothing removed."""
    count, kept = CountByChars(chars_per_token), list(items)
    calls = (item for item in kept if isinstance(item, ToolCall))
    counted = instructions_of(host, BASE) + sum(count.of_chars(len(c.output)) + _said_in(c, count) for c in calls)
    return max((item.prompt for item in kept if isinstance(item, RequestSent)), default=counted)
