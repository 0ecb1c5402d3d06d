"""The compactor: prunes, and when that is not enough has the older turns summarised, puts back the files that the agent
was at work on, and tells the session, so that no marker that is left points at anything that is gone.

    compactor = Compactor(session, summarize, trigger_tokens=100_000)
    messages = compactor.maybe_compact(messages)  # before each call of the model

It calls nothing but its session and `summarize`. A summary that cannot be had is done without: the agent goes on with
its task, its last turns, the files it was at work on, and the list of what it read and changed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from readcache.context import overflow
from readcache.context.compaction import How, Level, Made, Request, Settings, Steps, compact
from readcache.context.prune_rules import Rules, pruned
from readcache.context.pruner import ALL_STRATEGIES, check_strategies
from readcache.context.split import part
from readcache.context.telling import as_known_to
from readcache.errors import UsageError
from readcache.policy import Budget, Mode

if TYPE_CHECKING:
    from readcache.session import Session

# After so many failures in a row the model is no longer asked: Claude Code's MAX_CONSECUTIVE_AUTOCOMPACT_FAILURES.
MOST_FAILURES = 3
# What pruning leaves, and what stays beside a summary, is little enough at this share of the trigger, to which Cline
# compacts. With more the model would soon be asked again, in the end at every step.
ENOUGH = 0.7
# Characters of each text of the last turn, when nothing else is left to be made shorter. CooperBench clips at 20,000.
LAST_TURN_CHARS = (20_000, 5_000, 1_000)

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Report:
    """What the compactor did last, the tokens before and after, and why there is no summary of a model."""

    how: How
    tokens_before: int
    tokens_after: int
    trouble: str = ""


class Compactor:
    """Compacts the conversation of one session.

    `summarize` takes a list of one user message and returns the model's answer, a text or a message, or an awaitable of
    it for `acompact`. `trigger_tokens`: conversations of fewer are left alone by `maybe_compact`. `keep_turns`: so many
    of the last turns (see `turns`) stay verbatim, fewer where they leave too little room. `budget`: of the files put
    back. `strategies`: of `prune`. `is_overflow(error)`: did `summarize` fail because the request was too long? Raises
    UsageError for what has no meaning.
    """

    def __init__(
        self,
        session: Session,
        summarize: Callable[[Request], Any],
        *,
        trigger_tokens: int,
        keep_turns: int = 2,
        budget: Budget = Budget(),  # noqa: B008  frozen
        strategies: Collection[str] = ALL_STRATEGIES,
        is_overflow: Callable[[Exception], bool] = overflow.is_overflow,
    ) -> None:
        check_strategies(strategies)
        if trigger_tokens <= 0 or keep_turns < 0:
            raise UsageError(f"trigger_tokens={trigger_tokens} must be above 0 and keep_turns={keep_turns} not below")
        self.failures = 0  # of `summarize`, in a row; set it to 0 to have the model asked again
        self.report = Report(How.NOTHING, 0, 0)
        self._settings = Settings(session, trigger_tokens, budget, strategies, is_overflow)
        self._summarize = summarize
        fewest = min(1, keep_turns)
        self._levels = [Level(turns, is_first=turns == keep_turns) for turns in range(keep_turns, fewest - 1, -1)]
        self._levels += [Level(fewest, chars) for chars in LAST_TURN_CHARS]
        self._level = 0  # how tight the next compaction is: one more after each that did not get below the trigger

    def maybe_compact(self, messages: list[Raw], *, tokens: int | None = None) -> list[Raw]:
        """The messages to go on with: the very same list below the trigger, and when nothing can be gained. `tokens`:
        what the model's API last said that the conversation has; else they are counted by the session's policy."""
        counted = self._count(messages, tokens)
        if self._is_below(counted):
            return messages
        return self._finish(messages, self._call(self._compact_if_needed(messages, counted)))

    def compact(self, messages: list[Raw]) -> list[Raw]:
        """The messages compacted now, whatever they count, as when the model said that they are too many: each time
        tighter, where the time before left nothing to gain."""
        return self._finish(messages, self._call(self._compact_now(messages)))

    async def amaybe_compact(self, messages: list[Raw], *, tokens: int | None = None) -> list[Raw]:
        """`maybe_compact` with a `summarize` that may be asynchronous."""
        counted = self._count(messages, tokens)
        if self._is_below(counted):
            return messages
        return self._finish(messages, await self._await(self._compact_if_needed(messages, counted)))

    async def acompact(self, messages: list[Raw]) -> list[Raw]:
        """`compact` with a `summarize` that may be asynchronous."""
        return self._finish(messages, await self._await(self._compact_now(messages)))

    # ------------------------------------------------------------ the steps, and how the model is called between them

    def _count(self, messages: list[Raw], tokens: int | None) -> int:
        return self._settings.tokens(messages) if tokens is None else tokens

    def _is_below(self, counted: int) -> bool:
        if counted >= self._settings.trigger_tokens:
            return False
        self._level = 0
        self.report = Report(How.NOTHING, counted, counted)
        return True

    def _compact_if_needed(self, messages: list[Raw], counted: int) -> Steps:
        """Prunes, and does no more where that is enough. Nobody is told of a pruning that is not."""
        shorter = self._pruned(messages)
        share = self._settings.tokens(shorter) / max(1, self._settings.tokens(messages))
        if counted * share <= self._settings.trigger_tokens * ENOUGH:
            return Made(self._settings.session.mend(shorter), How.PRUNED)
        return (yield from self._at(self._roomy_level(messages, counted), messages))

    def _roomy_level(self, messages: list[Raw], counted: int) -> int:
        """The level that is due, or one that keeps fewer turns where these alone nearly fill the conversation."""
        settings = self._settings
        most = settings.trigger_tokens * ENOUGH * settings.tokens(messages) / counted
        for level in range(self._level, len(self._levels) - len(LAST_TURN_CHARS)):
            parts = part(messages, self._levels[level].keep_turns)
            if not parts.old:
                break
            if settings.tokens([*parts.head, *parts.kept]) <= most:
                return level
        return self._level

    def _compact_now(self, messages: list[Raw]) -> Steps:
        made = Made(messages, How.NOTHING)
        for level in range(self._level, len(self._levels)):
            made = yield from self._at(level, messages)
            if made.how is not How.NOTHING:
                break
        return made

    def _at(self, level: int, messages: list[Raw]) -> Steps:
        ask = self.failures < MOST_FAILURES
        made = yield from compact(messages, self._settings, self._levels[level], ask=ask)
        if made.how is How.SUMMARISED:
            self.failures = 0
        elif made.how is How.MECHANICAL and ask:
            self.failures += 1
        return made

    def _pruned(self, messages: list[Raw]) -> list[Raw]:
        """The messages as pruning would leave them; the session is not told yet."""
        session = self._settings.session
        if session.policy.mode is not Mode.ON:
            return messages
        rules = as_known_to(session, Rules(protect_last_turns=self._levels[0].keep_turns))
        return pruned(messages, self._settings.strategies, rules)

    def _finish(self, messages: list[Raw], made: Made) -> list[Raw]:
        after = self._settings.tokens(made.messages)
        self.report = Report(made.how, self._settings.tokens(messages), after, made.trouble)
        is_enough = made.how is not How.NOTHING and after < self._settings.trigger_tokens
        self._level = 0 if is_enough else min(self._level + 1, len(self._levels) - 1)
        return made.messages

    def _call(self, steps: Generator[Request, Any, Made]) -> Made:
        try:
            request = next(steps)
            while True:
                try:
                    answer = self._summarize(request)
                except Exception as error:
                    request = steps.throw(error)
                    continue
                if inspect.isawaitable(answer):
                    if inspect.iscoroutine(answer):
                        answer.close()  # else Python warns that nobody awaited it
                    raise UsageError("`summarize` is asynchronous: await `acompact` or `amaybe_compact`")
                request = steps.send(answer)
        except StopIteration as end:
            made: Made = end.value
            return made

    async def _await(self, steps: Generator[Request, Any, Made]) -> Made:
        try:
            request = next(steps)
            while True:
                try:
                    answer = self._summarize(request)
                    if inspect.isawaitable(answer):
                        answer = await answer
                except Exception as error:
                    request = steps.throw(error)
                    continue
                request = steps.send(answer)
        except StopIteration as end:
            made: Made = end.value
            return made
