"""The calls of one reader, each with its saving: a fold over the reader's records.

Each event's change of the reader's counters is booked under the event's call. So all calls add up to the counters of
`Session.stats`, in any grouping.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from readcache.core.model.events import (
    Account,
    Amended,
    Compacted,
    Delivered,
    Event,
    Failed,
    Forgot,
    Missed,
    Record,
    Removal,
    Wrote,
)
from readcache.core.model.policy import Policy, Prices
from readcache.core.model.records import event_for
from readcache.core.model.reply import Outcome, Reason
from readcache.core.model.tokens import chars_per_token
from readcache.core.model.unconfirmed import counted
from readcache.core.model.view import View
from readcache.report.faults import Faults
from readcache.report.log_check import LogCheck

PRICES = Policy().prices  # the ratios with which a session weighs its omissions
# The whole output is shown although its lines are visible: the reader insisted, or a marker was not worth it.
_SHOWN_AGAIN = (Reason.INSISTED, Reason.NO_GAIN, Reason.NOT_WORTH)


@dataclass
class AnsweredCall:
    """One answered call. Or a failure of readcache, or results that were not judged: these count no calls. `at`:
    seconds since the epoch."""

    at: float
    session: str
    host: str
    tool: str
    reason: str
    number: int = 0  # from 1; 0 if it is not an answered call
    is_shortened: bool = False
    counts: Counter[str] = field(default_factory=Counter)  # its changes of the counters of `Session.stats`
    unit: float = PRICES.chars_per_token  # characters that count as one token
    markers: int = 0  # that the reader was shown
    faults: int = 0  # markers whose bytes were requested again, see `Faults`
    turns: float = 0.0  # cost in tokens of the turns in which the reader requested its lines again
    price: float = 0.0  # cost of each of its tokens while it was carried
    expiries: int = 0  # pauses before it in which the prompt cache was lost

    @property
    def tokens(self) -> int:
        """Tokens saved, net of markers. Tokens of immediate rereads are not subtracted yet."""
        return self.counts["tokens_saved"] + self.counts["tokens_bounced"]

    @property
    def chars(self) -> int:
        """Characters saved, net of markers. Immediate rereads are not subtracted yet. 0 if the harness showed all of
        the output, or would have truncated it."""
        return self.counts["output_chars"] - self.counts["shown_chars"] if self.is_shortened and self.tokens else 0

    def sums(self) -> dict[str, float]:
        """Return what the call adds to each sum that `readcache gain --json` has beside the session's counters.

        The unit of the `priced_` sums is a token (or character) of input that no cache holds. A text is written to the
        provider's cache once. Each later call that carried the text reads it from there. An immediate reread costs what
        it requested again, and a turn.
        """
        counts, price = self.counts, self.price
        reread = self.chars if counts["tokens_bounced"] else 0
        was_in_view = self.is_shortened and not counts["reread_answered"]  # its lines had not left the conversation
        priced = {"tokens": self.chars * price, "bounced": reread * price, "output": counts["output_chars"] * price}
        net = priced["tokens"] - priced["bounced"] - self.unit * self.turns
        return {
            "results_cut": self.is_shortened,
            "markers": self.markers,
            "faults": self.faults,
            "rereads_in_view": was_in_view + sum(counts[reason.value] for reason in _SHOWN_AGAIN),
            "rereads_in_view_answered": was_in_view,
            "results_cut_chars": counts["output_chars"] if self.is_shortened else 0,
            "chars_saved": self.chars,
            "chars_bounced": reread,
            **{f"priced_{name}": chars / self.unit for name, chars in priced.items()},
            "priced_turns": self.turns,
            "priced_net": net / self.unit,
            "priced_chars_net": net,
            "priced_output_chars": priced["output"],
        }


class ReaderFold:
    """A fold that finds the calls of one reader. `check`: it receives each event; None: no marker is checked.
    `seconds`: the time that a prompt cache lasts after its last use; None: indefinitely. `model`: its tokens are
    counted; "" for the model that asked: the host named it, or it is one of the host's usual models."""

    def __init__(
        self,
        session: str,
        agent: str,
        check: LogCheck | None,
        prices: Prices = PRICES,
        seconds: float | None = None,
        model: str = "",
    ) -> None:
        self._session, self._agent, self._check = session, agent, check
        self._prices, self._seconds = prices, seconds
        self._expiries, self._asked_at = 0, float("inf")
        self._view, self._model = View(), model
        self._faults = Faults(self._view)
        self._calls: list[AnsweredCall] = []
        self._by_number: dict[int, AnsweredCall] = {}
        self._by_id: dict[str, AnsweredCall] = {}
        self._carried: dict[str, AnsweredCall] = {}  # the calls that the reader can still see, by ID
        self._host = ""

    def take(self, records: Iterable[Record]) -> list[AnsweredCall]:
        """Return the calls in all the reader's records, as `Store.records` gives them. Call this only once."""
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
        for number in self._faults.take(event):
            self._by_number[number].faults += 1
        view.apply(event)
        if isinstance(event, Delivered) and event.account is not None:
            self._answer(event, event.account, at)
        if isinstance(event, (Delivered, Amended)):
            self._note_account(event.call_id)
        self._book(event, at, before, [*view.calls.immediate_rereads.items()][immediate_rereads:], carried)
        if isinstance(event, Removal | Delivered):  # a call that is answered again replaces the earlier answer
            self._end([call_id for call_id in self._carried if not view.is_visible(call_id)])

    def _note_account(self, call_id: str) -> None:
        """Note the reason, the outcome and the markers of the call's answer, if they are known by now."""
        for event in (delivery.event for delivery in self._view.of_call(call_id)):
            if (account := counted(event)) is not None:
                call = self._by_id[call_id]
                call.reason, call.is_shortened = account.reason.value, account.outcome is not Outcome.FULL
                shown = call.markers or sum(marker.line >= 0 for marker in event.markers)
                call.markers = shown if call.is_shortened else 0  # a marker that leaves later was shown all the same

    def _answer(self, event: Delivered, account: Account, at: float) -> None:
        """Record an answered call. A call that is answered again stays one call, with the last answer."""
        self._host = account.host
        self._expiries += self._seconds is not None and at - self._asked_at > self._seconds
        self._asked_at = at
        number = self._view.calls.replaced.get(event.when.call, event.when.call)
        call = self._by_number.get(number)
        if call is None or self._by_id.get(event.call_id) is not call:
            call = AnsweredCall(at, self._session, "", "", "", event.when.call)
            self._calls.append(call)
        call.at, call.host, call.tool, call.expiries = at, account.host, account.tool, self._expiries
        call.unit = chars_per_token(self._model or account.model, account.host)
        call.markers = 0
        self._by_number[event.when.call] = self._by_id[event.call_id] = self._carried[event.call_id] = call

    def _book(
        self, event: Event, at: float, before: Counter[str], immediate_rereads: Iterable[tuple[int, int]], carried: int
    ) -> None:
        """Book the event's changes of the counters under its call. Each immediate reread, a pair (call, tokens), is
        subtracted from the call that had saved the tokens. `carried`: characters that the reader's model had in view
        when it requested the lines again."""
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
            omission.turns += self._prices.of_turn(carried / omission.unit)

    def _end(self, call_ids: Iterable[str]) -> None:
        """Set the prices of these calls, which are no longer carried."""
        for call_id in call_ids:
            call = self._carried.pop(call_id)
            later = self._view.calls.number - call.number  # calls that also carried it
            again = (self._expiries - call.expiries) * (self._prices.write - self._prices.read)
            call.price = self._prices.while_carried(later) + again
