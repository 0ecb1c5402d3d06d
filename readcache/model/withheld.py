"""Deliveries without their text: of one that can never be a source nothing else is needed, and of one that is on its
way to the reader nothing counts until a `Settled` says what was shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from readcache.model.events import Delivered, Record, Settled

T = TypeVar("T", bound=Delivered | Settled)


def withhold(event: T) -> T:
    """The event without its text, and what it says of that text's lines. Its counters count what was shown."""
    if not event.text:
        return event
    without = replace(event, text="", pieces=(), pointers=(), head="", tail="")
    if isinstance(without, Delivered) and without.account is not None:
        return replace(without, account=replace(without.account, shown_chars=len(event.text)))
    return without


def is_withheld(event: Delivered) -> bool:
    """True for a delivery that stands in the log without its text."""
    return event.account is not None and event.account.shown_chars is not None


def hand_out(event: Delivered) -> Settled:
    """The event after which the view has what `withhold(event)` has not."""
    known = event.call_id, event.text, event.pieces, event.pointers, event.origin
    return Settled(*known, lost=False, head=event.head, tail=event.tail)


def with_settled(event: Delivered, settled: Settled) -> Delivered:
    """The delivery with what was finally shown of it."""
    text, pieces, pointers = settled.text, settled.pieces, settled.pointers
    return replace(event, text=text, pieces=pieces, pointers=pointers, head=settled.head, tail=settled.tail)


def as_shown(records: Iterable[Record]) -> list[Record]:
    """The records with each text that was withheld where it was delivered, and not a second time."""
    out: list[Record] = []
    withheld: dict[tuple[str, str], int] = {}  # agent and call -> place in `out`
    for record in records:
        event, call = record.event, (record.agent_id, getattr(record.event, "call_id", ""))
        if isinstance(event, Delivered) and is_withheld(event):
            withheld[call] = len(out)
        elif isinstance(event, Settled) and call in withheld:
            place = withheld.pop(call)
            shown = out[place].event
            assert isinstance(shown, Delivered)
            out[place] = replace(out[place], event=with_settled(shown, event))
            continue
        out.append(record)
    return out
