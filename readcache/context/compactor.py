"""Compact conversations that have become too long.

A `Compactor` prunes first. If that is not enough, it has the older turns summarised and restores the files that the
agent was working on. It tells the session, so that no remaining marker names a text that is gone.

    compactor = Compactor(session, summarize, window=200_000)
    answer, messages = compactor.ask(model, messages)

It calls only its session and `summarize`. Without a summary, the agent continues with its task, its last turns, the
files that it was working on, and the list of files that it read and changed.

A host that calls the model itself, such as a program in another language, compacts in two steps:

    request = compaction_request(messages, session)  # the host sends it to a model, and gets a summary
    messages, report = compact_with(messages, session, summary)

Nothing is remembered between the steps: both take the same list. Append messages that arrive in the meantime
afterwards, because the summary does not cover them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

from readcache.context import compaction
from readcache.context.clearing import mend_and_clear
from readcache.context.compaction import TRIES, AskModel, CompactionResult, CompactorOptions, How, Level, Request
from readcache.context.formed import is_overflow, prompt_tokens, sendable, well_formed
from readcache.context.pruner import ALL_STRATEGIES, PruneRules, check_strategies, prune_known, repair_list
from readcache.context.split import split_turns
from readcache.context.summary import known_lines, request_of
from readcache.core.messages.blocks import Raw
from readcache.core.messages.messages import Message, normalise, normalise_one, plain, raw_messages
from readcache.core.messages.structure import repair
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
# Characters of each text of the last turn, if nothing else can be shortened. CooperBench clips at 20,000.
LAST_TURN_CHARS = (20_000, 5_000, 1_000)


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
      methods whose names start with "a", it may return an awaitable.
    - `window`: tokens that fit in the model's context.
    - `trigger_tokens`: shorter conversations are left unchanged (default: 0.8 of the window).
    - `keep_turns`: this many of the last turns (see `structure`) stay verbatim, fewer if they leave too little room.
    - `budget`: limits of the restored text.
    - `strategies`: the strategies of `prune`.
    - `is_overflow(error)`: returns True if a request failed because it was too long.
    - `prompt`: replaces `SUMMARY_PROMPT`. In it, `{tag}` names the tags around the transcript, and `{file_map}` is
      replaced with the facts from the log.

    If the session's policy has marks (`Policy.clear`), results are cleared by these first. Raise UsageError for invalid
    arguments.
    """

    def __init__(
        self,
        session: Session,
        summarize: Callable[[Request], Any],
        *,
        window: int | None = None,
        trigger_tokens: int | None = None,
        keep_turns: int = KEEP_TURNS,
        budget: Budget = Budget(),  # noqa: B008  frozen
        strategies: Collection[str] = ALL_STRATEGIES,
        is_overflow: Callable[[Exception], bool] = is_overflow,
        prompt: str | None = None,
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
        self._read: list[Message] = []  # the last list, so that each message is read only once
        self._options = CompactorOptions(session, trigger_tokens, budget, strategies, is_overflow, prompt)
        self._summarize = summarize
        self._levels = levels_of(keep_turns)
        self._level = 0  # index of the next level: one more after each compaction that stayed above the trigger

    def ready(self, messages: list[M], *, tokens: int | None = None) -> list[M]:
        """Return the messages as a request may send them; the same list object if nothing has to change.

        Every call has its result, the messages are compacted if they are too many, and no marker names a text that is
        gone. `tokens`: the size of the conversation that the model's API reported. If it is None, the size is what the
        API reported for the last request of `ask`, and the session's policy counts what is new since then.
        """
        return run_at_once(self._ready(messages, tokens, waits=False))

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
        return run_at_once(self._compact(messages, tokens, waits=False))

    def compact(self, messages: list[M]) -> list[M]:
        """Return the messages compacted now, at any size, for example if the model rejected them as too many.

        Each call is tighter than the last if that one gained nothing or did not get below the trigger.
        """
        return run_at_once(self._compact(messages, waits=False, is_forced=True))

    async def aready(self, messages: list[M], *, tokens: int | None = None) -> list[M]:
        """Do the same as `ready`, with a `summarize` that may be asynchronous."""
        return await self._ready(messages, tokens, waits=True)

    async def aask(self, model: Callable[[list[M]], Any], messages: list[M]) -> tuple[Any, list[M]]:
        """Do the same as `ask`, with a model and a `summarize` that may be asynchronous."""
        return await self._ask(model, messages, waits=True)

    async def amaybe_compact(self, messages: list[M], *, tokens: int | None = None) -> list[M]:
        """Do the same as `maybe_compact`, with a `summarize` that may be asynchronous."""
        return await self._compact(messages, tokens, waits=True)

    async def acompact(self, messages: list[M]) -> list[M]:
        """Do the same as `compact`, with a `summarize` that may be asynchronous."""
        return await self._compact(messages, waits=True, is_forced=True)

    async def _ready(self, messages: list[Any], tokens: int | None, *, waits: bool) -> list[Any]:
        repaired = repair(messages)
        if repaired is not messages:
            repaired = raw_messages(sendable(normalise(repaired)))
        return self._options.session.mend(await self._compact(repaired, tokens, waits=waits))

    async def _ask(self, model: Callable[[Any], Any], messages: list[Any], *, waits: bool) -> tuple[Any, list[Any]]:
        messages = await self._ready(messages, None, waits=waits)
        while True:
            try:
                answer = await _called(model, messages, waits=waits)
                break
            except Exception as error:
                if not self._options.is_overflow(error):
                    raise
                shorter = await self._compact(messages, waits=waits, is_forced=True)
                if shorter is messages:
                    raise
                messages = shorter
        told = prompt_tokens(answer)
        if told is not None:
            self._size.sent(told, self._options.tokens(normalise(messages)))
        return answer, messages

    async def _compact(
        self, messages: list[Any], tokens: int | None = None, *, waits: bool, is_forced: bool = False
    ) -> list[Any]:
        """Return the list for the harness: its own object for each unchanged message, and copies of the others."""
        options = self._options
        if options.session.policy.clear is not None and not is_forced:
            longer = messages
            messages = mend_and_clear(messages, options.session, tokens=tokens)
            if tokens is not None and messages is not longer:
                tokens -= options.tokens(normalise(longer)) - options.tokens(normalise(messages))
        normal = self._read_new(messages)
        before = options.tokens(normal)
        counted = self._tokens(normal) if tokens is None else tokens
        if counted < options.trigger_tokens and not is_forced:
            self._level = 0
            self.report = Report(How.NOTHING, counted, counted)
            return messages
        may_ask = self.failures < MOST_FAILURES
        ask = partial(_called, self._summarize, waits=waits) if may_ask else None
        formed, trigger = well_formed(normal), options.trigger_tokens * before / max(1, counted)
        if is_forced:
            levels = self._levels[self._levels.index(self._roomy_level(formed, trigger)) :]
            result = await compact_now(formed, options, levels, ask)
        else:
            result = await self._compact_if_needed(formed, trigger, ask)
        if result.how is How.SUMMARISED:
            self.failures = 0
        elif result.how is How.MECHANICAL and may_ask:
            self.failures += 1
        is_same = result.how is How.NOTHING
        if not is_same:
            self._size.restart(options.tokens(result.messages))
        after = before if is_same else options.tokens(result.messages)
        trouble = [result.trouble] if result.trouble else []
        if after >= options.trigger_tokens:
            hint = "nothing more can be taken out" if is_same else "compact again"
            trouble.append(f"{after} tokens are left at a trigger of {options.trigger_tokens}: {hint}")
        self.report = Report(result.how, before, after, "; ".join(trouble))
        is_enough = not is_same and after < options.trigger_tokens
        self._level = 0 if is_enough else min(self._level + 1, len(self._levels) - 1)
        if is_same:
            return messages
        self._read = list(result.messages)
        given = {id(message.raw): raw for message, raw in zip(normal, messages, strict=True)}
        return [given[id(m.raw)] if id(m.raw) in given else plain(m.raw) for m in result.messages]

    @property
    def _size(self) -> ConversationTokens:
        return self._options.session.size

    def _tokens(self, messages: Sequence[Message]) -> int:
        """Return the tokens of the conversation, which has more than these messages: the model's tools, for example."""
        return round(self._size.of(self._options.tokens(messages)))

    def _read_new(self, messages: Sequence[Raw]) -> list[Message]:
        """Return the harness's list as `Message` objects. Only the messages that changed are read again."""
        try:
            pairs = zip_longest(self._read[: len(messages)], messages)
            self._read = [
                m if m is not None and (m.raw == raw or m.raw == plain(raw)) else normalise_one(plain(raw))
                for m, raw in pairs
            ]
            return self._read
        except Exception as error:  # a list that cannot be compared or copied is still compacted
            self._options.session.reader.log.fail("", error)
            return normalise(messages)

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


def levels_of(keep_turns: int) -> list[Level]:
    """Return the levels of a compaction, each tighter than the one before."""
    levels = [Level(keep_turns, is_first=True)]
    # A quarter of the turns at a time keeps the levels few: a client of the server may ask for 2**53 turns.
    while levels[-1].keep_turns > 1:
        levels.append(Level(levels[-1].keep_turns - max(1, levels[-1].keep_turns // 4)))
    return levels + [Level(levels[-1].keep_turns, chars) for chars in LAST_TURN_CHARS]


async def compact_now(
    messages: Sequence[Message], options: CompactorOptions, levels: Sequence[Level], ask: AskModel
) -> CompactionResult:
    """Compact by the first of these levels that gains anything. Return the messages unchanged if none does."""
    for level in levels:
        result = await compaction.compact_once(messages, options, level, ask)
        if result.how is not How.NOTHING:
            return result
    return CompactionResult(messages, How.NOTHING)


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


# ---------------------------------------------------------------- in two steps


def compaction_request(
    messages: Sequence[Raw], session: Session, *, keep_turns: int = KEEP_TURNS, attempt: int = 0
) -> Request:
    """Return the first request that `Compactor.compact` would make: a list of one user message.

    Return [] if no turn is old enough to be summarised. `attempt`: how many requests for this list were longer than the
    model's window.
    """
    normal = well_formed(normalise(messages))
    for level in levels_of(keep_turns):
        split = split_turns(normal, level.keep_turns)
        if split.old:
            transcript = compaction.transcript_of(split, ALL_STRATEGIES, *TRIES[min(attempt, len(TRIES) - 1)])
            return request_of(transcript, known_lines(session, split.old, split.summaries))
    return []


def compact_with(
    messages: list[Raw],
    session: Session,
    summary: str = "",
    *,
    keep_turns: int = KEEP_TURNS,
    trigger_tokens: int | None = None,
    budget: Budget = Budget(),  # noqa: B008  frozen
) -> tuple[list[Raw], Report]:
    """Return the messages compacted with the model's answer to `compaction_request`, and a report.

    Without a summary, the old turns are removed mechanically, as when the model fails. `trigger_tokens`: by default,
    the current number of tokens in the list.
    """
    answers = iter([summary])  # only for these old turns: it does not cover the turns that a tighter try adds

    async def ask(_: Request) -> str:
        return next(answers, "")

    normal = normalise(messages)
    counted = compaction.count_tokens(normal, session.policy)
    trigger = trigger_tokens or max(1, counted)
    within = budget.within(int(trigger / TRIGGER_OF_WINDOW))
    options = CompactorOptions(session, trigger, within, ALL_STRATEGIES, is_overflow)
    result = run_at_once(compact_now(well_formed(normal), options, levels_of(keep_turns), ask))
    report = Report(result.how, counted, options.tokens(result.messages), result.trouble)
    return messages if result.how is How.NOTHING else raw_messages(result.messages), report
