"""Sums of calls by spans of days, and by day, host, tool, reason or session. Also the coverage of each host."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta

from readcache.core.model.calls import MISSED
from readcache.core.model.events import Record
from readcache.core.model.policy import Prices
from readcache.core.model.records import unreadable_events
from readcache.core.model.reply import Reason
from readcache.report import DIMENSIONS
from readcache.report.answered import PRICES, AnsweredCall, ReaderFold
from readcache.report.log_check import LogCheck

ENOUGH = 20  # results of a host: the newest sessions with this many results show its present state
# The reasons of results that could have been shortened, and that the host showed in full.
_NOT_SHORTENED = (Reason.NOT_PROVEN, Reason.NOT_SENT, Reason.UNCONFIRMED)
UNKNOWN = "unknown"  # the name of a host or tool that has none
ALL = "all"
WINDOWS = {"today": 1, "7 days": 7, "30 days": 30}  # days, including today


@dataclass
class HostCoverage:
    """The newest results of one host. `host` is "" if no result of it was judged."""

    host: str
    judged: int = 0
    shortened: int = 0  # results that the model was sent with a marker
    missed: Counter[str] = field(default_factory=Counter)  # results that were not judged, by cause
    not_shortened: Counter[str] = field(default_factory=Counter)  # results that could have been, by the reason why not

    @property
    def seen(self) -> int:
        """Number of results, judged or not."""
        return self.judged + self.missed.total()

    def add(self, calls: Iterable[AnsweredCall]) -> None:
        """Add the calls of one reader. Its last result never counts as unconfirmed."""
        last = ""
        for call in calls:
            if count := call.counts[MISSED]:
                self.missed[call.reason] += count
                continue
            last = call.reason if call.counts["calls"] else last
            self.judged += call.counts["calls"]
            self.shortened += call.is_shortened
            self.not_shortened.update(reason.why for reason in _NOT_SHORTENED if reason.value == call.reason)
        if last == Reason.UNCONFIRMED.value:  # nobody confirms the last result if the host ended after it
            self.not_shortened -= Counter([Reason.UNCONFIRMED.why])

    def problem(self) -> str:
        """Return the reason why readcache does not work in this host, in one line. Return "" if it works, or if fewer
        than `ENOUGH` results are known."""
        if self.seen < ENOUGH or self.shortened:
            return ""
        if not self.judged:
            return f"{self._named()}0 of {self.seen} results were judged: {_first(self.missed)}"
        if not (markers := self.not_shortened.total()):
            return ""
        return f"{self._named()}0 of {markers} markers reached the model: {_first(self.not_shortened)}"

    def line(self) -> str:
        """Return `problem()`. If there is no problem, return a line with the number of results that were not judged;
        "" if all were."""
        if (problem := self.problem()) or not self.missed:
            return problem
        return f"{self._named()}{self.missed.total()} of {self.seen} results were not judged: {_first(self.missed)}"

    def _named(self) -> str:
        return f"{self.host}: " if self.host else ""


def _first(reasons: Counter[str]) -> str:
    return reasons.most_common(1)[0][0]


class Totals:
    """The sums of some calls. `counts`: of `Session.stats`, which subtracts immediate rereads. `sums`: of
    `AnsweredCall.sums`."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.sums = defaultdict[str, float](int)

    def add(self, call: AnsweredCall) -> None:
        """Add a call."""
        self.counts.update(call.counts)
        for name, value in call.sums().items():
            self.sums[name] += value

    @property
    def saved(self) -> int:
        """Tokens saved, before immediate rereads are subtracted."""
        return self.counts["tokens_saved"] + self.counts["tokens_bounced"]

    @property
    def chars_net(self) -> float:
        """Characters saved, less immediate rereads."""
        return self.sums["chars_saved"] - self.sums["chars_bounced"]


@dataclass(frozen=True)
class Asked:
    """A query for sums of calls. `since`, `until`: seconds since the epoch, without `until` itself; None: no bound.

    `day_of` returns the user's local day of a time. `today` is the current day. `by`: some of `DIMENSIONS`. `prices`:
    the prices of the model, whose prompt cache lasts `seconds` after its last use (None: indefinitely). `model`: its
    name; "" for the models that asked.
    """

    day_of: Callable[[float], date]
    today: date
    since: float | None = None
    until: float | None = None
    by: tuple[str, ...] = DIMENSIONS
    prices: Prices = PRICES
    seconds: float | None = None
    model: str = ""

    @property
    def has_bounds(self) -> bool:
        """True if the query is for some days, and not for all."""
        return self.since is not None or self.until is not None

    def contains(self, at: float) -> bool:
        """Return True if the query includes a call at this time (seconds since the epoch)."""
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)


class Gain:
    """The savings of any number of readers. `proves`: check each marker against the log."""

    def __init__(self, asked: Asked, *, proves: bool = True) -> None:
        names = (ALL,) if asked.has_bounds else (*WINDOWS, ALL)
        self.windows = {name: Totals() for name in names}
        self.by: dict[str, dict[str, Totals]] = {dimension: {} for dimension in asked.by}
        self.proof = LogCheck()
        self.sessions: set[str] = set()
        self.hosts: set[str] = set()
        self.first: date | None = None  # the day of the first call
        self.damaged: list[str] = []
        self.missed = Counter[str]()  # tool results that were not judged, by cause
        self.asked, self._proves = asked, proves

    @property
    def total(self) -> Totals:
        """The sums of all calls of the query."""
        return self.windows[ALL]

    def coverage(self) -> list[str]:
        """Return a line for each cause for which results were not judged: how many of all results."""
        seen = self.total.counts["calls"] + self.missed.total()
        return [f"{count:,} of {seen:,} results were not judged: {why}" for why, count in self.missed.items()]

    def add_reader(self, session: str, agent: str, records: Iterable[Record]) -> None:
        """Add one reader's records, as `Store.records` gives them."""
        records = list(records)
        self.damaged += unreadable_events(record for record in records if record.agent_id == agent)
        if self._proves:
            self.proof.begin(session, agent, records)
        check = self.proof if self._proves else None
        fold = ReaderFold(session, agent, check, self.asked.prices, self.asked.seconds, self.asked.model)
        for call in fold.take(records):
            if self.asked.contains(call.at):
                self._add(call)

    def _add(self, call: AnsweredCall) -> None:
        day = self.asked.day_of(call.at)
        if missed := call.counts[MISSED]:
            self.missed[call.reason] += missed
        self.sessions.add(call.session)
        self.hosts.add(call.host)
        self.first = day if self.first is None else min(day, self.first)
        for name, totals in self.windows.items():
            if name == ALL or day > self.asked.today - timedelta(days=WINDOWS[name]):
                totals.add(call)
        for dimension, groups in self.by.items():
            name = day.isoformat() if dimension == "day" else getattr(call, dimension) or UNKNOWN
            groups.setdefault(name, Totals()).add(call)
