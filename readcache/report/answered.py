"""The calls of one reader, each with what it saved: a fold over the reader's records.

An event's change to the reader's counters is booked under its call, so that all calls add up to the counters of
`Session.stats`, however they are grouped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from readcache.core.model.events import (
    Amended,
    Compacted,
    Delivered,
    Event,
    Failed,
    Forgot,
    Missed,
    Record,
    Rewound,
    Wrote,
)
from readcache.core.model.policy import Policy, Prices
from readcache.core.model.records import event_for
from readcache.core.model.reply import Outcome
from readcache.core.model.unconfirmed import counted
from readcache.core.model.view import View
from readcache.report.log_check import LogCheck

PRICES = Policy().prices  # the ratios that a session weighs its omissions by
_TAKES_AWAY = (Compacted, Delivered, Forgot, Rewound)  # after which a call may no longer be visible


@dataclass
class AnsweredCall:
    """One call that was answered; or a failure of ours, which counts no calls. `at`: seconds since the epoch."""

    at: float
    session: str
    host: str
    tool: str
    reason: str
    number: int = 0  # from 1
    is_shortened: bool = False
    counts: Counter[str] = field(default_factory=Counter)  # what it changed in the counters of `Session.stats`
    later: int = 0  # calls after it that carried it, too
    turns: float = 0.0  # what the turns cost in which the reader asked for its lines again, in tokens
    price: float = 0.0  # what each of its tokens cost while it was carried
    expiries: int = 0  # pauses before it in which the prompt cache was lost

    @property
    def tokens(self) -> int:
        """Saved, net of markers; what bounced not yet taken off."""
        return self.counts["tokens_saved"] + self.counts["tokens_bounced"]

    @property
    def chars(self) -> int:
        """The same in characters. None if the harness showed all of it, or would have cut it."""
        return self.counts["output_chars"] - self.counts["shown_chars"] if self.is_shortened and self.tokens else 0


class ReaderFold:
    """The calls of one reader. `check`: is told each event; None: no marker is checked. `seconds`: how long a prompt
    cache holds after its last use; None: for ever."""

    def __init__(
        self, session: str, agent: str, check: LogCheck | None, prices: Prices = PRICES, seconds: float | None = None
    ) -> None:
        self._session, self._agent, self._check = session, agent, check
        self._prices, self._seconds = prices, seconds
        self._expiries, self._asked_at = 0, float("inf")
        self._view = View()
        self._calls: list[AnsweredCall] = []
        self._by_number: dict[int, AnsweredCall] = {}
        self._by_id: dict[str, AnsweredCall] = {}
        self._carried: dict[str, AnsweredCall] = {}  # what the reader can still see, by id
        self._host = ""

    def take(self, records: Iterable[Record]) -> list[AnsweredCall]:
        """The calls in all the reader's records, those of `Store.records`. Once."""
        for record in records:
            event = event_for(record, self._agent)
            if event is not None:
                self._apply(event, record.at)
        self._end([*self._carried])
        return self._calls

    def _apply(self, event: Event, at: float) -> None:
        view = self._view
        if self._check is not None:
            self._check.take(event)
        before, immediate_rereads, carried = view.calls.counts.copy(), len(view.calls.immediate_rereads), view.carried
        view.apply(event)
        if isinstance(event, Delivered) and event.account is not None:
            self._answer(event, event.account.host, event.account.tool, at)
        if isinstance(event, (Delivered, Amended)):
            self._note_account(event.call_id)
        self._book(event, at, before, [*view.calls.immediate_rereads.items()][immediate_rereads:], carried)
        if isinstance(event, _TAKES_AWAY):
            self._end([call_id for call_id in self._carried if not view.is_visible(call_id)])

    def _note_account(self, call_id: str) -> None:
        """Note how the call was answered, as far as that is known by now."""
        found = (counted(delivery.event) for delivery in self._view.of_call(call_id))
        if (account := next((one for one in found if one is not None), None)) is not None:
            call = self._by_id[call_id]
            call.reason, call.is_shortened = account.reason.value, account.outcome is not Outcome.FULL

    def _answer(self, event: Delivered, host: str, tool: str, at: float) -> None:
        """One more call; one that is answered anew is the same call, with the last answer."""
        self._host = host
        self._expiries += self._seconds is not None and at - self._asked_at > self._seconds
        self._asked_at = at
        number = self._view.calls.replaced.get(event.when.call, event.when.call)
        call = self._by_number.get(number)
        if call is None or self._by_id.get(event.call_id) is not call:
            call = AnsweredCall(at, self._session, "", "", "", event.when.call)
            self._calls.append(call)
        call.at, call.host, call.tool, call.expiries = at, host, tool, self._expiries
        self._by_number[event.when.call] = self._by_id[event.call_id] = self._carried[event.call_id] = call

    def _book(
        self, event: Event, at: float, before: Counter[str], immediate_rereads: Iterable[tuple[int, int]], carried: int
    ) -> None:
        """What the event changed in the counters. What an answer bounced off, (call, tokens) each, is taken off where
        it had been saved. `carried`: characters that the reader's model had in view when it asked."""
        counts = self._view.calls.counts
        changed = {name: counts[name] - before[name] for name in counts.keys() | before.keys()}
        call = self._by_id.get(getattr(event, "call_id", ""))
        if isinstance(event, (Compacted, Forgot, Wrote)) and self._calls:
            call = self._calls[-1]
        if isinstance(event, (Failed, Missed)):
            reason = event.cause if isinstance(event, Failed) else event.why
            call = AnsweredCall(at, self._session, self._host, "", reason)
            self._calls.append(call)
        if call is None:
            return
        call.counts.update({name: count for name, count in changed.items() if count})
        for number, tokens in immediate_rereads:
            moved = Counter(bounces=1, tokens_bounced=tokens, tokens_saved=-tokens)
            call.counts.subtract(moved)
            omission = self._by_number[number]
            omission.counts.update(moved)
            omission.turns += self._prices.of_turn(carried // PRICES.chars_per_token)

    def _end(self, call_ids: Iterable[str]) -> None:
        """These calls are no longer carried."""
        for call_id in call_ids:
            call = self._carried.pop(call_id)
            call.later = self._view.calls.number - call.number
            again = (self._expiries - call.expiries) * (self._prices.write - self._prices.read)
            call.price = self._prices.while_carried(call.later) + again
