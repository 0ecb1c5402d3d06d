"""Keep a compactor's condensations in the session's log, so that another process gets the same list.

The log gets names, digests, places, notes and summaries, and no other text of the conversation. It has the restored
sections already. A condensation that needs a text which is not stored is marked, and is not applied from the log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from readcache.context.compaction import CompactorOptions
from readcache.context.condensation import Condensation
from readcache.context.pruner import PruneRules, Work, with_knowledge
from readcache.context.recording import RecordedList
from readcache.core.judging.protect import shows_lines_of
from readcache.core.messages.blocks import Raw
from readcache.core.messages.messages import Message
from readcache.core.model.errors import StoreError, UsageError
from readcache.core.model.events import NOT_STORED, Compacted, Condensed, Delivered, Event, Origin
from readcache.core.model.secrets import contains_secret, quotable_in

if TYPE_CHECKING:
    from readcache.session import Session

EXPIRED = "the log expired or was deleted: no condensation is applied"


def sections_of(session: Session) -> dict[str, str]:
    """Return the ID of each visible restored section, by its text."""
    restored = (d.event for d in session.view.deliveries if d.event.origin is Origin.RESTORED)
    return {event.text: event.call_id for event in restored}


def resume_list(
    listed: RecordedList, session: Session, messages: Sequence[Raw], told: Sequence[Condensation] | None
) -> None:
    """Take the whole list and its condensations. `told`: None for the ones in the log. Later ones are only logged if
    the log has these, because it must not give another list."""
    events = _own_events(session)
    logged = _condensations_in(events)
    listed.resume(messages, logged if told is None else told)
    if told is None and not logged and events[:1] == [Compacted(frozenset())]:  # `Store.take_out` leaves this event
        listed.trouble = EXPIRED
    listed.may_store = logged[: len(listed.condensations)] == listed.condensations


def record_and_log(
    listed: RecordedList, after: Sequence[Message], why: str, options: CompactorOptions
) -> Condensation | None:
    """Record what shortened the list to the messages `after`, also in the session's log. Return None if nothing is
    recorded."""
    before = listed.left
    saved = max(0, options.tokens(before) - options.tokens(after))
    made = listed.record(after, why, saved=saved, sections=sections_of(options.session))
    if made is not None and listed.may_store:  # a later summary takes over what an earlier one says
        listed.may_store = log_condensation(options.session, made, len(listed.condensations) - 1, before)
    return made


def log_condensation(session: Session, made: Condensation, number: int, before: Sequence[Message]) -> bool:
    """Log a condensation that comes after `number` others. `before`: the messages before it. Return False if its
    summary may contain a secret, so that it was not stored."""
    if not session.may_shorten:
        return True
    data = {**replace(made, section=None).to_dict(), "section": None}
    has_secret = made.summary is not None and _shows_secret(session, made.summary, before)
    lines = {line for each in made.changes for line in each.note.split("\n") if line}
    is_known = lines <= set(session.markers_in("\n".join(sorted(lines))))
    if has_secret or not is_known or made.restored == "":
        data = {"id": made.id, "version": NOT_STORED}
    event = Condensed(number, json.dumps(data))
    session.reader.tell("", lambda _: [event])
    return not has_secret


def _shows_secret(session: Session, summary: str, before: Sequence[Message]) -> bool:
    """Return True if the summary contains a certain secret, or a line or value of a protected result."""
    if contains_secret(summary) or shows_lines_of(session.policy.protected, summary):
        return True
    work = Work(before, (), with_knowledge(PruneRules(), before, session))
    protected = (one.text for one in work.results if one.is_protected)
    return any(part in summary for text in protected for part in quotable_in(text))


def _own_events(session: Session) -> list[Event]:
    """Return the events of this reader. Return [] if the log cannot be read."""
    try:
        return [record.event for record in session.events() if record.agent_id == session.agent_id]
    except StoreError:
        return []


def _condensations_in(events: Sequence[Event]) -> list[Condensation]:
    """Return the condensations in a log, in order. One that is not complete, or that lacks the ones before it, has a
    version that no list accepts."""
    sections = {e.call_id: e.text for e in events if isinstance(e, Delivered) and e.origin is Origin.RESTORED}
    found: list[Condensation] = []
    for event in events:
        if isinstance(event, Condensed):
            made = _read(event.data, sections)
            found[event.number :] = [made if event.number <= len(found) else replace(made, version=0)]
    return found


def _read(data: str, sections: dict[str, str]) -> Condensation:
    made = readable(json.loads(data))
    return replace(made, section=sections.get(made.restored)) if made.restored is not None else made


def readable(given: Mapping[str, Any]) -> Condensation:
    """Return a condensation from its data. If it has another version or is not complete, its version is one that no
    list accepts."""
    try:
        return Condensation.from_dict(given)
    except UsageError:
        return Condensation(id=str(given.get("id")), version=0, why="unknown")
