"""Deliveries whose text the view does not have.

There are two kinds. A text that can never be a source is not needed, so its event is logged without it. An
*unconfirmed* reply is a reply for which nobody has said yet which text the host showed. The log has the reply, every
figure counts it as shown in full, and the view has neither its omissions nor its lines. An `Amended` event confirms the
reply, or says which text was shown instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from readcache.core.model.events import Account, Amended, Closed, Delivered, MappedSpan, Origin, Output, Record
from readcache.core.model.reply import Outcome, Reason
from readcache.core.model.text import digest

T = TypeVar("T", bound=Delivered | Amended)


def without_text(event: T) -> T:
    """Return the event without its text and without everything about the lines of that text. The event's account keeps
    the number of characters shown."""
    if not event.text:
        return event
    without = replace(event, text="", source_map=(), markers=(), head="", tail="")
    if isinstance(without, Delivered):
        without = replace(without, output=None)
        if without.account is not None:
            without = replace(without, account=replace(without.account, shown_chars=len(event.text)))
    return without


def lacks_text(event: Delivered) -> bool:
    """Return True for a delivery that is in the log without its text."""
    return not event.text and event.account is not None and event.account.shown_chars is not None


def mark_unconfirmed(event: Delivered, output: str, source_map: tuple[MappedSpan, ...]) -> Delivered:
    """Return the delivery of a reply that may never be shown. `output` and `source_map` belong to the whole output."""
    real_output = Output(digest(output.rstrip()), source_map) if event.markers else None
    return replace(event, unconfirmed=True, output=real_output)


def confirmed(call_id: str) -> Amended:
    """Return the event that records that the reply to this call was shown as it was answered."""
    return Amended(call_id, "", lost=False, confirms=True)


def hand_out(event: Delivered) -> Amended:
    """Return the event that gives the view the text, the lines and the markers of an unconfirmed reply."""
    known = event.call_id, event.text, event.source_map, event.markers, event.origin
    return Amended(*known, lost=False, head=event.head, tail=event.tail)


def counted(event: Delivered) -> Account | None:
    """Return the account as every figure counts it, with the characters that count as shown: an unconfirmed omission
    counts as none."""
    account = event.account
    if account is None:
        return None
    if not event.unconfirmed or account.outcome is Outcome.FULL:
        return account if account.shown_chars is not None else replace(account, shown_chars=len(event.text))
    as_full = replace(account, outcome=Outcome.FULL, reason=Reason.UNCONFIRMED, tokens_saved=0)
    return replace(as_full, shown_chars=account.output_chars)


def shown_chars(event: Delivered) -> int:
    """Return the number of characters that count as shown."""
    account = counted(event)
    known = None if account is None else account.shown_chars
    return len(event.text) if known is None else known


def with_amended(event: Delivered, amended: Amended) -> Delivered:
    """Return the delivery with the text that was finally shown, and with the account of that text."""
    if amended.confirms:
        account = event.account
        if account is not None and account.shown_chars is None:  # a number here records that the reply was shown
            account = replace(account, shown_chars=len(event.text))
        return replace(event, account=account, unconfirmed=False, output=None)
    text, source_map, markers = amended.text, amended.source_map, amended.markers
    shown = replace(event, text=text, source_map=source_map, markers=markers, head=amended.head, tail=amended.tail)
    account = event.account
    if account is not None and _omits_nothing(event, account, amended):
        reason, chars = amended.reason or Reason.NOT_SENT, max(len(text), account.output_chars)
        account = replace(account, outcome=Outcome.FULL, reason=reason, tokens_saved=0, shown_chars=chars)
    elif account is not None and account.shown_chars is None:
        account = replace(account, shown_chars=len(event.text))  # the host's own truncation does not count as a saving
    return replace(shown, account=account, unconfirmed=False, output=None)


def _omits_nothing(event: Delivered, account: Account, amended: Amended) -> bool:
    """Return True if the reply omitted lines and the text that was shown instead has no marker. A text that is shorter
    than the output may be a part of the reply that the host kept later, unless the reply was never shown."""
    if account.outcome is Outcome.FULL or any(marker.line >= 0 for marker in amended.markers):
        return False
    return event.unconfirmed or len(amended.text) >= account.output_chars


def as_shown(records: Iterable[Record]) -> list[Record]:
    """Return the records in which each delivery has the text that was finally shown. The `Amended` events that brought
    these texts are left out."""
    out: list[Record] = []
    waiting: dict[tuple[str, str], int] = {}  # agent and call -> index in `out`
    for record in records:
        event, call = record.event, (record.agent_id, getattr(record.event, "call_id", ""))
        if isinstance(event, Delivered) and (event.unconfirmed or lacks_text(event)):
            waiting[call] = len(out)
        elif isinstance(event, Amended) and event.origin is Origin.RESULT and call in waiting:
            index = waiting.pop(call)
            shown = out[index].event
            assert isinstance(shown, Delivered)
            out[index] = replace(out[index], event=with_amended(shown, event))
            continue
        elif isinstance(event, Amended) and event.confirms:
            continue  # the reply was confirmed before
        out.append(record)
    return out


def as_counted(records: Iterable[Record]) -> list[Record]:
    """Return the records of `as_shown` for reports: each call has its account from `counted`, and there is no
    `Closed`."""
    out: list[Record] = []
    indexes: dict[tuple[str, str], int] = {}  # agent and call -> index in `out`
    for record in as_shown(records):
        event = record.event
        if isinstance(event, Closed):
            continue
        if isinstance(event, Delivered) and event.unconfirmed:
            event = replace(without_text(event), account=counted(event), unconfirmed=False, output=None)
        if isinstance(event, Delivered) and event.account is not None:
            indexes[record.agent_id, event.call_id] = len(out)
        elif isinstance(event, Amended) and (at := indexes.get((record.agent_id, event.call_id))) is not None:
            answered = out[at].event
            assert isinstance(answered, Delivered)
            answered = replace(answered, account=with_amended(answered, event).account)
            out[at] = replace(out[at], event=answered)
        out.append(replace(record, event=event))
    return out
