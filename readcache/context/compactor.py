"""Compact conversations that have become too long.

A `Compactor` prunes first. If that is not enough, it has the older turns summarised and restores the files that the
agent was working on. It tells the session, so that no remaining marker names a text that is gone.

    compactor = Compactor(session, summarize, window=200_000)
    answer, messages = compactor.ask(model, messages)

It calls only its session and `summarize`. Without a summary, the agent continues with its task, its last turns, the
files that it was working on, and the list of files that it read and changed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from readcache.context import compaction
from readcache.context.clearing import mend_and_clear
from readcache.context.compaction import (
    AskModel,
    CompactionResult,
    CompactorOptions,
    How,
    Level,
    Request,
    compact_now,
    levels_of,
)
from readcache.context.condensation import Condensation
from readcache.context.condensed_log import record_and_log, resume_list
from readcache.context.formed import is_overflow, prompt_tokens, without_blanks
from readcache.context.pruner import ALL_STRATEGIES, PruneRules, check_strategies, prune_known, repair_list
from readcache.context.recording import RecordedList, joined
from readcache.context.split import split_turns
from readcache.core.messages.blocks import Raw
from readcache.core.messages.messages import Message, normalise, raw_messages, update_all
from readcache.core.model.errors import UsageError
from readcache.core.model.policy import Budget
from readcache.core.model.tokens import ConversationTokens

if TYPE_CHECKING:
    from readcache.session import Session

A = TypeVar("A")  # an answer of the harness's model
M = TypeVar("M", bound=Raw)  # a message of the harness's list
T = TypeVar("T")

# After this many failures in a row, the model is no longer asked (Claude Code's MAX_CONSECUTIVE_AUTOCOMPACT_FAILURES).
MOST_FAILURES = 3
# Share of the window at which a conversation is compacted, as in goose and Cline.
TRIGGER_OF_WINDOW = 0.8
# Pruning, or a summary, freed enough if the rest is at most this share of the trigger, to which Cline compacts.
# With a larger rest, the model would soon be asked again, in the end at every step.
ENOUGH = 0.7
KEEP_TURNS = 2
WHY_OF = {How.PRUNED: "pruned", How.CLIPPED: "truncated"}  # what a condensation is called; others are "compacted"


@dataclass(frozen=True, slots=True)
class Report:
    """A report of the last compaction: what it did, and the tokens before and after.

    `trouble`: why the model wrote no summary, or why the list is not below its trigger; "" if neither happened.
    """

    how: How
    tokens_before: int
    tokens_after: int
    trouble: str = ""


class Compactor:
    """Compacts the conversation of one session.

    - `summarize`: takes a list of one user message and returns the model's response, a text or a message. For the
      methods whose names start with "a", it may return an awaitable. None: the old turns are removed without a model's
      summary.
    - `window`: tokens that fit in the model's context.
    - `trigger_tokens`: shorter conversations are left unchanged (default: 0.8 of the window).
    - `keep_turns`: this many of the last turns (see `structure`) stay verbatim, fewer if they leave too little room.
    - `budget`: limits of the restored text.
    - `strategies`: the strategies of `prune`.
    - `is_overflow(error)`: returns True if a request failed because it was too long.
    - `prompt`: replaces `SUMMARY_PROMPT`. In it, `{tag}` names the tags around the transcript, and `{file_map}` is
      replaced with the facts from the log.
    - `on_condensation(condensation)`: is called with each change of the list, before the list is returned.

    The methods take the whole list of the harness, or the list that they returned last with new messages. Earlier
    changes are applied to a whole list first, so nothing is summarised twice.

    If the session's policy has marks (`Policy.clear`), results are cleared by these first. Raise UsageError for invalid
    arguments.
    """

    def __init__(
        self,
        session: Session,
        summarize: Callable[[Request], Any] | None,
        *,
        window: int | None = None,
        trigger_tokens: int | None = None,
        keep_turns: int = KEEP_TURNS,
        budget: Budget = Budget(),  # noqa: B008  frozen
        strategies: Collection[str] = ALL_STRATEGIES,
        is_overflow: Callable[[Exception], bool] = is_overflow,
        prompt: str | None = None,
        on_condensation: Callable[[Condensation], object] | None = None,
    ) -> None:
        check_strategies(strategies)
        if trigger_tokens is None:
            if window is None:
                raise UsageError("give the model's window=, or trigger_tokens=")
            trigger_tokens = int(window * TRIGGER_OF_WINDOW)
        if trigger_tokens <= 0 or keep_turns < 0:
            raise UsageError(f"trigger_tokens={trigger_tokens} must be above 0, and keep_turns={keep_turns} at least 0")
        budget = budget.within(window or int(trigger_tokens / TRIGGER_OF_WINDOW))
        self.failures = 0  # of `summarize`, in a row; set it to 0 and the model is asked again
        self.report = Report(How.NOTHING, 0, 0)
        self._list = RecordedList()
        self._is_requested = False
        self._on_condensation = on_condensation
        self._options = CompactorOptions(session, trigger_tokens, budget, strategies, is_overflow, prompt)
        self._summarize = summarize
        self._levels = levels_of(keep_turns)
        self._level = 0  # index of the next level: one more after each compaction that stayed above the trigger

    @property
    def condensations(self) -> list[Condensation]:
        """All changes of the list, in order: `view_of(whole, condensations)` is the list that was returned last."""
        return self._list.condensations[:]

    def resume(self, messages: list[M], condensations: Sequence[Condensation] | None = None) -> list[M]:
        """Return the harness's whole list as an earlier process shortened it. `condensations`: None for those in the
        session's log.

        If one cannot be applied (its summary was not stored, the log has expired, the list differs, or its version is
        unknown), it and the ones after it are not applied, and `report.trouble` names them.
        """
        resume_list(self._list, self._options.session, messages, condensations)
        tokens = self._options.tokens(self._list.left)
        self.report = Report(How.NOTHING, tokens, tokens, self._list.trouble)
        return self._list.returned(messages)

    def request_compaction(self) -> None:
        """Compact at the next step, once, at any size."""
        self._is_requested = True

    def ready(self, messages: list[M], *, tokens: int | None = None) -> list[M]:
        """Return the messages as a request may send them; the same list object if nothing has to change.

        Every call has its result, the messages are compacted if they are too many, and no marker names a text that is
        gone. `tokens`: the size of the conversation that the model's API reported. If it is None, the size is what the
        API reported for the last request of `ask`, and the session's policy counts what is new since then.
        """
        return run_at_once(self._step(messages, tokens, waits=False, is_request=True))

    def ask(self, model: Callable[[list[M]], A], messages: list[M]) -> tuple[A, list[M]]:
        """Return the model's answer and the messages that it answers. The caller appends the answer to them.

        The messages are `ready`. If they are too many for the model, they are compacted and the model is asked again.
        Raise the model's other errors, and its overflow error if compacting gains nothing.
        """
        return run_at_once(self._ask(model, messages, waits=False))

    def maybe_compact(self, messages: list[M], *, tokens: int | None = None) -> list[M]:
        """Return the messages to continue with: compacted if they reach the trigger.

        Return the same list object if nothing changed. Below the trigger, only results may be cleared (`Policy.clear`).
        `tokens`: as for `ready`.
        """
        return run_at_once(self._step(messages, tokens, waits=False))

    def compact(self, messages: list[M]) -> list[M]:
        """Return the messages compacted now, at any size, for example if the model rejected them as too many.

        Each call is tighter than the last if that one gained nothing or did not get below the trigger.
        """
        return run_at_once(self._step(messages, waits=False, is_forced=True))

    async def aready(self, messages: list[M], *, tokens: int | None = None) -> list[M]:
        """Do the same as `ready`, with a `summarize` that may be asynchronous."""
        return await self._step(messages, tokens, waits=True, is_request=True)

    async def aask(self, model: Callable[[list[M]], Any], messages: list[M]) -> tuple[Any, list[M]]:
        """Do the same as `ask`, with a model and a `summarize` that may be asynchronous."""
        return await self._ask(model, messages, waits=True)

    async def amaybe_compact(self, messages: list[M], *, tokens: int | None = None) -> list[M]:
        """Do the same as `maybe_compact`, with a `summarize` that may be asynchronous."""
        return await self._step(messages, tokens, waits=True)

    async def acompact(self, messages: list[M]) -> list[M]:
        """Do the same as `compact`, with a `summarize` that may be asynchronous."""
        return await self._step(messages, waits=True, is_forced=True)

    async def _ask(self, model: Callable[[Any], Any], messages: list[Any], *, waits: bool) -> tuple[Any, list[Any]]:
        messages = await self._step(messages, waits=waits, is_request=True)
        while True:
            try:
                answer = await _called(model, messages, waits=waits)
                break
            except Exception as error:
                if not self._options.is_overflow(error):
                    raise
                shorter = await self._step(messages, waits=waits, is_forced=True)
                if shorter is messages:
                    raise
                messages = shorter
        told = prompt_tokens(answer)
        if told is not None:
            self._size.sent(told, self._options.tokens(normalise(messages)))
        return answer, messages

    async def _step(
        self,
        given: list[Any],
        tokens: int | None = None,
        *,
        waits: bool,
        is_forced: bool = False,
        is_request: bool = False,
    ) -> list[Any]:
        """Return the list for the harness. `is_request`: it will be sent, so no call may wait for its result."""
        try:
            self._list.follow(given, may_wait=not is_request)
        except Exception as error:  # a list that cannot be compared or copied is still compacted
            self._options.session.reader.log.fail("", error)
            self._list.restart(normalise(given))
        is_forced, self._is_requested = is_forced or self._is_requested, False
        if self._options.session.policy.clear is not None and not is_forced:
            tokens = self._clear(tokens)
        await self._compact(tokens, waits=waits, is_forced=is_forced)
        if is_request:
            left = self._list.left
            self._record(update_all(left, self._options.session.mend(raw_messages(left))), "mended")
        self.report = replace(self.report, trouble=joined(self.report.trouble, self._list.trouble))
        return self._list.returned(given)

    def _clear(self, tokens: int | None) -> int | None:
        """Clear old results. Return the tokens of the conversation that are then left, if the API reported them."""
        before = self._list.left
        raws = raw_messages(before)
        after = update_all(before, mend_and_clear(raws, self._options.session, tokens=tokens))
        saved = self._options.tokens(before) - self._options.tokens(after)
        self._record(after, "cleared")
        return None if tokens is None else tokens - saved

    async def _compact(self, tokens: int | None, *, waits: bool, is_forced: bool) -> None:
        """Compact the list if it reaches the trigger, or if that is forced, and report it."""
        options, messages = self._options, self._list.left
        before = options.tokens(messages)
        counted = self._tokens(messages) if tokens is None else tokens
        if counted < options.trigger_tokens and not is_forced:
            self._level = 0
            self.report = Report(How.NOTHING, counted, counted)
            return
        summarize = self._summarize if self.failures < MOST_FAILURES else None
        ask = partial(_called, summarize, waits=waits) if summarize is not None else None
        formed, trigger = without_blanks(messages), options.trigger_tokens * before / max(1, counted)
        if is_forced:
            levels = self._levels[self._levels.index(self._roomy_level(formed, trigger)) :]
            result = await compact_now(formed, options, levels, ask)
        else:
            result = await self._compact_if_needed(formed, trigger, ask)
        if result.how is How.SUMMARISED:
            self.failures = 0
        elif result.how is How.MECHANICAL and ask is not None:
            self.failures += 1
        is_same = result.how is How.NOTHING
        if not is_same:
            self._size.restart(options.tokens(result.messages))
            self._record(result.messages, WHY_OF.get(result.how, "compacted"))
        after = before if is_same else options.tokens(result.messages)
        trouble = result.trouble
        if result.how is How.MECHANICAL and ask is None and self._summarize is not None:
            trouble = "the model was not asked: it failed too often"
        if after >= options.trigger_tokens:
            hint = "nothing more can be taken out" if is_same else "compact again"
            trouble = joined(trouble, f"{after} tokens are left at a trigger of {options.trigger_tokens}: {hint}")
        self.report = Report(result.how, before, after, trouble)
        is_enough = not is_same and after < options.trigger_tokens
        self._level = 0 if is_enough else min(self._level + 1, len(self._levels) - 1)

    def _record(self, after: Sequence[Message], why: str) -> None:
        """Record what shortened the list, and tell the harness."""
        made = record_and_log(self._list, after, why, self._options)
        if made is not None and self._on_condensation is not None:
            self._on_condensation(made)

    @property
    def _size(self) -> ConversationTokens:
        return self._options.session.size

    def _tokens(self, messages: Sequence[Message]) -> int:
        """Return the tokens of the conversation, which has more than these messages: the model's tools, for example."""
        return round(self._size.of(self._options.tokens(messages)))

    async def _compact_if_needed(self, messages: Sequence[Message], trigger: float, ask: AskModel) -> CompactionResult:
        """Prune, and stop if that frees enough. Otherwise compact the given messages, and do not record the pruning."""
        options = self._options
        rules = PruneRules(protect_last_turns=self._levels[0].keep_turns)
        shorter = prune_known(messages, options.session, options.strategies, rules)
        if options.tokens(shorter) <= trigger * ENOUGH:
            return CompactionResult(repair_list(options.session, shorter), How.PRUNED)
        return await compaction.compact_once(messages, options, self._roomy_level(messages, trigger), ask)

    def _roomy_level(self, messages: Sequence[Message], trigger: float) -> Level:
        """Return the level that is due, or a tighter one if the kept messages would nearly fill the conversation.

        If they would overfill it at every level, return the level that is due, because no level helps.
        """
        due = self._levels[self._level :]
        splits = {level: split_turns(messages, level.keep_turns) for level in due}
        tokens = {each: compaction.tokens_that_stay(split, self._options, each) for each, split in splits.items()}
        unclipped = [level for level in due if level.most_chars == sys.maxsize]
        fits = [level for level in unclipped if tokens[level] <= trigger * ENOUGH]
        return next(iter(fits + [level for level in due if tokens[level] < trigger]), due[0])


async def _called(function: Callable[[Any], Any], request: Any, *, waits: bool) -> Any:
    """Return the function's response, awaited if necessary. Raise UsageError if it must be awaited and may not."""
    response = function(request)
    if not inspect.isawaitable(response):
        return response
    if waits:
        return await response
    if inspect.iscoroutine(response):
        response.close()  # without this, Python warns that it was never awaited
    name = getattr(function, "__name__", "the function")
    raise UsageError(f"{name} is asynchronous: await aask, aready, acompact or amaybe_compact instead")


def run_at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that waits for nothing. Raise AssertionError if it waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a coroutine that awaits nothing was suspended")
