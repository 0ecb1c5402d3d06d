"""Between a message list and its session: what the session knows of the calls, and what it must be told."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from readcache.context.editing import with_result_text, with_texts
from readcache.context.exchanges import NOWHERE
from readcache.context.messages import Kind, normalise
from readcache.context.strategies import Rules
from readcache.events import Origin
from readcache.view import View

if TYPE_CHECKING:
    from readcache.session import Session

Raw = Mapping[str, Any]


def as_known_to(session: Session, rules: Rules) -> Rules:
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


def tell(session: Session, messages: list[Raw]) -> list[Raw]:
    """Tells the session that these are now the messages; they come back with every marker true."""
    shown = replies_with_markers(session.view)
    rewrites = session.sync(messages)  # by call id, what is to stand instead of the text in which the reply stands

    def named(call_id: str, _text: str) -> str:
        return rewrites[call_id]

    def found(call_id: str, text: str) -> str:
        return rewrites[call_id] if _stands_in(text, shown.get(call_id, "")) else text

    return _changed(messages, rewrites, named, found)


def mended(messages: list[Raw], rewrites: Mapping[str, str], shown: Mapping[str, str]) -> list[Raw]:
    """The messages with the new texts of replies, by call id, in the place of those that were `shown`: as
    `Session.compacted` gives them, without what the harness put around them."""

    def swap(call_id: str, text: str) -> str:
        return _swapped(text, shown.get(call_id, ""), rewrites[call_id])

    return _changed(messages, rewrites, swap, swap)


def replies_with_markers(view: View) -> dict[str, str]:
    """The visible replies that have a marker, by call id."""
    replies = (d.event for d in view.deliveries if d.event.origin is Origin.RESULT and d.event.pointers)
    return {event.call_id: event.text for event in replies}


Change = Callable[[str, str], str]


def _changed(messages: list[Raw], calls: Collection[str], named: Change, found: Change) -> list[Raw]:
    """The messages with each of these calls' results changed by `named(call_id, text)`. A call whose id is not in the
    list: the newest text that `found(call_id, text)` changes."""
    if not calls:
        return messages
    left = set(calls)
    out = list(messages)
    for message in reversed(normalise(messages)):  # an id used again is that of the newer call
        for part in message.parts:
            if part.kind is Kind.RESULT and part.call_id in left:
                left.remove(part.call_id)
                new = named(part.call_id, part.text)
                out[message.index] = with_result_text(out[message.index], part.call_id, new)
    for call_id in left:
        for index in reversed(range(len(out))):
            changed = with_texts(out[index], partial(found, call_id))
            if changed is not out[index]:
                out[index] = changed
                break
    return out


# How a reply may stand in a text: as it is, or in JSON (mini-swe-agent's own template).
_FORMS: tuple[Callable[[str], str], ...] = (
    lambda reply: reply,
    lambda reply: json.dumps(reply)[1:-1],
    lambda reply: json.dumps(reply, ensure_ascii=False)[1:-1],
)


def _swapped(text: str, old: str, new: str) -> str:
    old, new = old.removesuffix("\n"), new.removesuffix("\n")
    for form in _FORMS:
        before, found, after = text.rpartition(form(old))
        if old and found:
            return before + form(new) + after
    return text


def _stands_in(text: str, reply: str) -> bool:
    reply = reply.removesuffix("\n")
    return bool(reply) and any(form(reply) in text for form in _FORMS)


def kept_calls(view: View, messages: Sequence[Raw]) -> frozenset[str]:
    """The calls of which something is left in these messages: by their ids, or by their texts where there are none."""
    normal = normalise(messages)
    parts = [part for message in normal for part in message.parts]
    ids = {part.call_id for part in parts if part.call_id is not None}
    texts = [part.text for part in parts if part.kind is Kind.TEXT]
    return frozenset(
        d.event.call_id
        for d in view.deliveries
        if d.event.call_id in ids
        or (d.event.origin is Origin.RESULT and any(_stands_in(text, d.event.text) for text in texts))
    )
