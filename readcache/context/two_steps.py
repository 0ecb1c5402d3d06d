"""Compact in two steps, for a host that calls the model itself, such as a program in another language.

    request = compaction_request(messages, session)  # the host sends it to a model, and gets a summary
    messages, report = compact_with(messages, session, summary)

Nothing is remembered between the steps: both take the same list. Append messages that arrive in the meantime
afterwards, because the summary does not cover them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from readcache.context import compaction
from readcache.context.compaction import TRIES, CompactorOptions, How, Request, compact_now, levels_of
from readcache.context.compactor import KEEP_TURNS, TRIGGER_OF_WINDOW, Report, run_at_once
from readcache.context.formed import is_overflow, sendable, well_formed
from readcache.context.pruner import ALL_STRATEGIES
from readcache.context.split import split_turns
from readcache.context.summary import known_lines, request_of
from readcache.core.messages.blocks import Raw
from readcache.core.messages.messages import normalise, raw_messages
from readcache.core.model.policy import Budget

if TYPE_CHECKING:
    from readcache.session import Session


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
    # The summary may be a person's, without sections.
    options = CompactorOptions(session, trigger, within, ALL_STRATEGIES, is_overflow, prompt="")
    result = run_at_once(compact_now(well_formed(normal), options, levels_of(keep_turns), ask))
    report = Report(result.how, counted, options.tokens(result.messages), result.trouble)
    return messages if result.how is How.NOTHING else raw_messages(sendable(result.messages, normal)), report
