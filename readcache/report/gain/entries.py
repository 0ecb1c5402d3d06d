"""The calls of one reader, each with what it saved: a fold over the reader's records.

What an event changes in the reader's counters is booked under the call that it is about, so that all entries together
are the counters of `Session.stats`, whatever is asked of them by day, host or reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from readcache import Outcome, Policy
from readcache.model.events import (
    Account,
    Compacted,
    Delivered,
    Event,
    Failed,
    Forgot,
    Record,
    Rewound,
    Settled,
    Wrote,
)
from readcache.model.records import event_for
from readcache.model.view import View
from readcache.report.gain.proof import Proof

PRICES = Policy().prices  # the ratios that a session weighs its omissions by, and a replay counts with
_TAKES_AWAY = (Compacted, Delivered, Forgot, Rewound)  # after which a call may no longer be visible


@dataclass
class Entry:
    """One call that was answered, or, with `calls` of 0, a failure of ours. `at`: seconds since the epoch."""

    at: float
    session: str
    host: str
    tool: str
    reason: str
    number: int = 0  # of the call, from 1
    is_cut: bool = False
    counts: Counter[str] = field(default_factory=Counter)  # what it changed in the counters of `Session.stats`
    later: int = 0  # calls after it that carried it, too
    turns: float = 0.0  # what the turns cost in which the reader asked for its lines again, in tokens

    @cached_property
    def price(self) -> float:
        """What each of its tokens cost while it was carried."""
        return PRICES.while_carried(self.later)

    @property
    def tokens(self) -> int:
        """Saved, net of markers; what bounced not yet taken off."""
        return self.counts["tokens_saved"] + self.counts["tokens_bounced"]

    @property
    def chars(self) -> int:
        """The same in characters. None where the harness showed all of it after all."""
        return self.counts["output_chars"] - self.counts["shown_chars"] if self.is_cut and self.tokens else 0


class ReaderFold:
    """The entries of one reader. `proof`: proves each marker on the way; None: nobody asks."""

    def __init__(self, session: str, agent: str, proof: Proof | None) -> None:
        self.entries: list[Entry] = []
        self._session, self._agent, self._proof = session, agent, proof
        self._view = View()
        self._by_number: dict[int, Entry] = {}
        self._by_call: dict[str, Entry] = {}
        self._live: dict[str, Entry] = {}  # what the reader can still see
        self._host = ""

    def take(self, records: Iterable[Record]) -> list[Entry]:
        """The entries of all the reader's records, those of `Store.records`."""
        for record in records:
            event = event_for(record, self._agent)
            if event is not None:
                self._apply(event, record.at)
        self._end([*self._live])
        return self.entries

    def _apply(self, event: Event, at: float) -> None:
        view, counts = self._view, self._view.calls.counts
        if isinstance(event, Wrote):
            view.apply(event)
            return
        if self._proof is not None and isinstance(event, Delivered):
            self._proof.delivered(view, event)
        shown = self._settled(event)
        before, bounced = counts.copy(), len(view.calls.bounced)
        view.apply(event)
        changed = {name: counts[name] - before[name] for name in {*counts, *before} if counts[name] != before[name]}
        new = [*view.calls.bounced.items()][bounced:]
        if isinstance(event, Delivered) and event.account is not None:
            self._answer(event, event.account, at)
        elif isinstance(event, Failed):
            failure = Entry(at, self._session, self._host, "", event.cause)
            self.entries.append(failure)
            failure.counts.update(changed)
            return
        if self._proof is not None and isinstance(event, Settled):
            self._proof.settled(view, event, shown)
        entry = self._by_call.get(getattr(event, "call_id", ""))
        if entry is not None and changed:
            entry.counts.update(changed)
            self._bounce(entry, new)
        if isinstance(event, _TAKES_AWAY):
            self._end([call for call in self._live if not view.is_visible(call)])

    def _settled(self, event: Event) -> tuple[Delivered, ...]:
        """The texts that the event replaces."""
        if not isinstance(event, Settled):
            return ()
        return tuple(d.event for d in self._view.of_call(event.call_id) if d.event.origin is event.origin)

    def _answer(self, event: Delivered, account: Account, at: float) -> None:
        """The call's entry. One that was answered anew has one entry, of the last answer."""
        self._host = account.host
        entry = self._by_number.get(event.when.call)
        if entry is None or self._by_call.get(event.call_id) is not entry:
            entry = Entry(at, self._session, "", "", "", event.when.call)
            self.entries.append(entry)
        entry.at, entry.host, entry.tool, entry.reason = at, account.host, account.tool, account.reason.value
        entry.is_cut = account.outcome is not Outcome.FULL
        self._by_number[entry.number] = self._by_call[event.call_id] = self._live[event.call_id] = entry

    def _bounce(self, entry: Entry, bounced: Iterable[tuple[int, int]]) -> None:
        """What the answer `entry` bounced off is taken off where it had been saved: (call, tokens) each."""
        for number, tokens in bounced:
            moved = Counter(bounces=1, tokens_bounced=tokens, tokens_saved=-tokens)
            entry.counts.subtract(moved)
            omission = self._by_number[number]
            omission.counts.update(moved)
            omission.turns += PRICES.of_turn(self._view.carried // PRICES.chars_per_token)

    def _end(self, calls: Iterable[str]) -> None:
        """These calls are no longer carried."""
        for call in calls:
            entry = self._live.pop(call)
            entry.later = self._view.calls.number - entry.number
