"""Deliveries without their text: of one that can never be a source nothing else is needed, and of one that is on its
way to the reader nothing counts until a `Settled` says what was shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from readcache.model.events import Delivered, Record, Settled


def withhold(event: Delivered) -> Delivered:
    """The delivery without its text, and what it says of that text's lines. Its counters count what was shown."""
    if not event.text:
        return event
    account = event.account and replace(event.account, shown_chars=len(event.text))
    return replace(event, text="", pieces=(), pointers=(), account=account)


def hand_out(event: Delivered) -> Settled:
    """The event after which the view has what `withhold(event)` has not."""
    return Settled(event.call_id, event.text, event.pieces, event.pointers, event.origin, lost=False)


def as_shown(records: Iterable[Record]) -> list[Record]:
    """The records with each text that was withheld where it was delivered, and not a second time."""
    out: list[Record] = []
    withheld: dict[tuple[str, str], int] = {}  # agent and call -> place in `out`
    for record in records:
        event, call = record.event, (record.agent_id, getattr(record.event, "call_id", ""))
        if isinstance(event, Delivered) and event.account is not None and event.account.shown_chars is not None:
            withheld[call] = len(out)
        elif isinstance(event, Settled) and call in withheld:
            place = withheld.pop(call)
            shown = out[place].event
            assert isinstance(shown, Delivered)
            shown = replace(shown, text=event.text, pieces=event.pieces, pointers=event.pointers)
            out[place] = replace(out[place], event=shown)
            continue
        out.append(record)
    return out
