"""Compact in two steps, for a host that calls the model itself, such as a program in another language.

    request = compaction_request(messages, session)  # the host sends it to a model, and gets a summary
    messages, report = compact_with(messages, session, summary)

Nothing is remembered between the steps: both take the same list. Append messages that arrive in the meantime
afterwards, because the summary does not cover them. A host that keeps its whole list also gives the condensations
made so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from readcache.context import compaction
from readcache.context.compaction import TRIES, CompactorOptions, How, Request, compact_now, levels_of
from readcache.context.compactor import KEEP_TURNS, TRIGGER_OF_WINDOW, WHY_OF, Report, run_at_once
from readcache.context.condensation import Condensation
from readcache.context.condensed_log import record_and_log, resume_list
from readcache.context.formed import is_overflow, without_blanks
from readcache.context.pruner import ALL_STRATEGIES
from readcache.context.recording import RecordedList, joined
from readcache.context.split import split_turns
from readcache.context.summary import known_lines, request_of
from readcache.core.messages.blocks import Raw
from readcache.core.model.policy import Budget

if TYPE_CHECKING:
    from readcache.session import Session


def compaction_request(
    messages: Sequence[Raw],
    session: Session,
    *,
    condensations: Sequence[Condensation] = (),
    keep_turns: int = KEEP_TURNS,
    attempt: int = 0,
) -> Request:
    """Return the first request that `Compactor.compact` would make: a list of one user message.

    Return [] if no turn is old enough to be summarised. `attempt`: how many requests for this list were longer than the
    model's window.
    """
    listed = RecordedList()
    listed.resume(messages, condensations)
    normal = without_blanks(listed.left)
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
    condensations: Sequence[Condensation] | None = None,
    keep_turns: int = KEEP_TURNS,
    trigger_tokens: int | None = None,
    budget: Budget = Budget(),  # noqa: B008  frozen
) -> tuple[list[Raw], Report, list[Condensation]]:
    """Return the messages compacted with the model's answer to `compaction_request`, a report, and what is new in
    condensations.

    Without a summary, the old turns are removed mechanically, as when the model fails. `trigger_tokens`: by default,
    the current number of tokens in the list. `condensations`: the ones made so far, if this is the whole list. The
    log gets the new one. None: this is the list that was returned last.
    """
    answers = iter([summary])  # only for these old turns: it does not cover the turns that a tighter try adds

    async def ask(_: Request) -> str:
        return next(answers, "")

    listed = RecordedList()
    resume_list(listed, session, messages, condensations or ())
    listed.may_store = listed.may_store and condensations is not None
    counted = compaction.count_tokens(listed.left, session.policy)
    trigger = trigger_tokens or max(1, counted)
    within = budget.within(int(trigger / TRIGGER_OF_WINDOW))
    # The summary may be a person's, without sections.
    options = CompactorOptions(session, trigger, within, ALL_STRATEGIES, is_overflow, prompt="")
    result = run_at_once(compact_now(without_blanks(listed.left), options, levels_of(keep_turns), ask))
    is_same, why = result.how is How.NOTHING, WHY_OF.get(result.how, "compacted")
    made = None if is_same else record_and_log(listed, result.messages, why, options)
    report = Report(result.how, counted, options.tokens(result.messages), joined(result.trouble, listed.trouble))
    sent = messages if is_same and not condensations else listed.returned(messages)  # a malformed list stays as it is
    return sent, report, [] if made is None else [made]
