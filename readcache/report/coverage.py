"""Tells whether readcache works in a host: how many of its newest results were judged, and how many shortened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from readcache.core.model.calls import MISSED
from readcache.core.model.reply import Reason
from readcache.report.gain.answered import AnsweredCall

ENOUGH = 20  # results of a host: the newest sessions that have so many say how it is now
# Results of which lines could have been omitted, and the host showed all of it.
_NOT_SHORTENED = (Reason.NOT_PROVEN, Reason.NOT_SENT, Reason.UNCONFIRMED)


@dataclass
class HostCoverage:
    """The newest results of one host. `host` is "" if no result of it was judged."""

    host: str
    judged: int = 0
    shortened: int = 0  # results that the model was sent with a marker
    missed: Counter[str] = field(default_factory=Counter)  # results that were not judged, by why
    not_shortened: Counter[str] = field(default_factory=Counter)  # results that could have been shortened, by why not

    @property
    def seen(self) -> int:
        """All results, judged or not."""
        return self.judged + self.missed.total()

    def add(self, calls: Iterable[AnsweredCall]) -> None:
        """Take in the calls of one reader. Nobody confirms its last one if the host ended with it."""
        last = ""
        for call in calls:
            if count := call.counts[MISSED]:
                self.missed[call.reason] += count
                continue
            last = call.reason if call.counts["calls"] else last
            self.judged += call.counts["calls"]
            self.shortened += call.is_shortened
            self.not_shortened.update(reason.why for reason in _NOT_SHORTENED if reason.value == call.reason)
        if last == Reason.UNCONFIRMED.value:
            self.not_shortened -= Counter([Reason.UNCONFIRMED.why])

    def problem(self) -> str:
        """Return why it does not work, in one line; "" if it works, or too few results are known."""
        if self.seen < ENOUGH or self.shortened:
            return ""
        if not self.judged:
            return f"{self._named()}0 of {self.seen} results were judged: {_first(self.missed)}"
        if not self.not_shortened:
            return ""
        return (
            f"{self._named()}0 of {self.not_shortened.total()} markers reached the model: {_first(self.not_shortened)}"
        )

    def line(self) -> str:
        """Return `problem`, or how many results were not judged; "" if all were."""
        missed = self.missed.total()
        some = (
            f"{self._named()}{missed} of {self.seen} results were not judged: {_first(self.missed)}" if missed else ""
        )
        return self.problem() or some

    def _named(self) -> str:
        return f"{self.host}: " if self.host else ""


def _first(reasons: Counter[str]) -> str:
    return reasons.most_common(1)[0][0]
