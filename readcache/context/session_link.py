"""Between a message list and its session: what the session knows of the calls, and what it must be told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from readcache.context.prune_rules import PruneRules
from readcache.context.tool_calls import NOWHERE
from readcache.messages.editing import with_result_text, with_texts
from readcache.messages.messages import Kind, Message, raw_messages, update
from readcache.model.events import MADE_UP_ID, Delivered, Origin
from readcache.model.view import View

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


def mend_replies(messages: list[Message], rewrites: Mapping[str, str], shown: Mapping[str, str]) -> list[Message]:
    """The messages with the new texts of replies, by call id, in the place of those that were `shown`: as
    `Session.compacted` gives them, without what the harness put around them. A call whose id is not in the list: in the
    newest text that holds the reply."""
    if not rewrites:
        return messages

    def swap(call_id: str, text: str) -> str:
        return _swapped(text, shown.get(call_id, ""), rewrites[call_id])

    left = set(rewrites)
    out = raw_messages(messages)
    for index, message in reversed(list(enumerate(messages))):  # an id used again is that of the newer call
        for part in message.parts:
            if part.kind is Kind.RESULT and part.call_id in left:
                left.remove(part.call_id)
                out[index] = with_result_text(out[index], part.call_id, swap(part.call_id, part.text))
    for call_id in left:
        for index in reversed(range(len(out))):
            changed = with_texts(out[index], partial(swap, call_id))
            if changed is not out[index]:
                out[index] = changed
                break
    return [update(message, raw) for message, raw in zip(messages, out, strict=True)]


def replies_with_markers(view: View) -> dict[str, str]:
    """The visible replies that have a marker, by call id."""
    replies = (d.event for d in view.deliveries if d.event.origin is Origin.RESULT and d.event.pointers)
    return {event.call_id: event.text for event in replies}


# How a reply may stand in a text: as it is, or in JSON (mini-swe-agent's own template).
_FORMS: tuple[Callable[[str], str], ...] = (
    lambda reply: reply,
    lambda reply: json.dumps(reply)[1:-1],
    lambda reply: json.dumps(reply, ensure_ascii=False)[1:-1],
)


def _swapped(text: str, old: str, new: str) -> str:
    old, new = old.removesuffix("\n"), new.removesuffix("\n")
    for form in _FORMS if old else ():  # nothing is left of a reply that a harness cleared
        before, found, after = text.rpartition(form(old))
        if found:
            return before + form(new) + after
    return text


def _stands_in(text: str, reply: str) -> bool:
    reply = reply.removesuffix("\n")
    return bool(reply) and any(form(reply) in text for form in _FORMS)


def kept_calls(view: View, messages: Iterable[Message], kept: Sequence[Message]) -> frozenset[str]:
    """The calls of which something is left in `kept`, a part of the messages: by their ids, or by their texts where the
    messages have none."""
    ids, before = _ids(kept), _ids(messages)
    visible = [d.event for d in view.deliveries]
    has_ids = any(event.call_id in before for event in visible)
    texts = [part.text for message in kept for part in message.parts if part.kind is Kind.TEXT]

    def stands(event: Delivered) -> bool:
        if event.origin is not Origin.RESULT or (has_ids and not event.call_id.startswith(MADE_UP_ID)):
            return event.call_id in ids
        return event.call_id in ids or any(_stands_in(text, event.text) for text in texts)

    return frozenset(event.call_id for event in visible if stands(event))


def _ids(messages: Iterable[Message]) -> frozenset[str]:
    parts = [part for message in messages for part in message.parts]
    return frozenset(part.call_id for part in parts if part.call_id is not None)
