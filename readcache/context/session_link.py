"""Between a message list and its session: what the session knows of the calls, and what it must be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from readcache.context.prune_rules import PruneRules
from readcache.context.tool_calls import NOWHERE
from readcache.conversation.sync import Standing
from readcache.messages.editing import with_results
from readcache.messages.messages import Message, raw_messages, update
from readcache.model.events import Forgot
from readcache.policy import Budget
from readcache.reply import Reason

if TYPE_CHECKING:
    from readcache.session import Session


def session_rules(session: Session, rules: PruneRules) -> PruneRules:
    """The rules with what the session knows."""
    view = session.view
    pointed_at = (source for d in view.deliveries for pointer in d.event.pointers for source in pointer.sources)
    return replace(
        rules,
        view=view,
        root=NOWHERE,  # of calls that it does not know, it does not know the directory either
        tag=session.tag,
        min_chars=session.policy.min_chars,
        protected=(*rules.protected, *session.policy.protected),
        pinned=frozenset(pointed_at),
    )


def mend_list(session: Session, messages: Sequence[Message]) -> list[Message]:
    """Tells the session that these are now the messages; they come back with every marker true."""
    raws = session.mend(raw_messages(messages))
    return [update(message, raw) for message, raw in zip(messages, raws, strict=True)]


def restore_files(session: Session, messages: Sequence[Message], budget: Budget) -> tuple[list[Message], str]:
    """Tells the session that of the conversation these messages stay, and that the files at work are shown again: the
    messages with their markers pointed at that section or retired, and the section's text."""
    raws, view, standing = raw_messages(messages), session.view, Standing()
    keep: frozenset[str] = frozenset()
    try:
        events = standing.reconcile(view, raws, tag=session.tag).events
        gone = [event.call_ids for event in events if isinstance(event, Forgot)]
        keep = frozenset(delivery.event.call_id for delivery in view.deliveries).difference(*gone)
    except Exception as error:  # as in `sync`: a list that nobody understands holds nothing for sure
        session.reader.log.fail("", Reason.INTERNAL_ERROR, error)
    plan = session.restore_plan(keep=keep, budget=budget)
    done = session.compacted(keep=keep, restored=plan)
    mended = with_results(raws, standing.with_replies(done.rewrites))
    return [update(message, raw) for message, raw in zip(messages, mended, strict=True)], plan.render()
