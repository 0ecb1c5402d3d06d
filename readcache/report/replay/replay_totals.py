"""What replays add up to. Plain counters: workers send them home, and they are added."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from readcache.transcripts.records import Damage

MOST_NAMED = 5  # wrong omissions, and files that were not understood, that are named


def ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    """The most first, equal ones by name: workers end in any order, and what is printed must not depend on it."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


@dataclass(slots=True)
class PolicyTotals:
    """One policy. `counts`: see `replayer`; by tool: characters saved, net."""

    counts: Counter[str] = field(default_factory=Counter)
    by_tool: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: PolicyTotals) -> None:
        """Takes another one in."""
        self.counts.update(other.counts)
        self.by_tool.update(other.by_tool)
        self.wrong = (self.wrong + other.wrong)[:MOST_NAMED]


@dataclass(slots=True)
class ReplayTotals:
    """One conversation, or many."""

    counts: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)
    calls_by_tool: Counter[str] = field(default_factory=Counter)
    out_by_tool: Counter[str] = field(default_factory=Counter)
    policies: dict[str, PolicyTotals] = field(default_factory=dict)
    models: Counter[str] = field(default_factory=Counter)  # conversations by model, with the date of its prices
    unpriced: Counter[str] = field(default_factory=Counter)  # with usage fields, by a model whose prices are not known
    strategies: dict[str, Counter[str]] = field(default_factory=dict)  # of keeping a conversation, see `conversations`
    together: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)  # the same, of each with each policy

    def add(self, other: ReplayTotals) -> None:
        """Takes another one in."""
        self.counts.update(other.counts)
        self.forms.update(other.forms)
        self.calls_by_tool.update(other.calls_by_tool)
        self.out_by_tool.update(other.out_by_tool)
        self.models.update(other.models)
        self.unpriced.update(other.unpriced)
        for strategy, counts in other.strategies.items():
            self.strategies.setdefault(strategy, Counter()).update(counts)
        for strategy, pairs in other.together.items():
            for name, counts in pairs.items():
                self.together.setdefault(strategy, {}).setdefault(name, Counter()).update(counts)
        for name, policy in other.policies.items():
            self.policies.setdefault(name, PolicyTotals()).add(policy)


@dataclass(frozen=True, slots=True)
class Replayed:
    """One conversation. `first_call`: its harness's id of the first call, "" for none."""

    totals: ReplayTotals
    first_call: str = ""


@dataclass(slots=True)
class Outcomes:
    """What came of one unit of work."""

    replayed: list[Replayed] = field(default_factory=list)
    damage: Damage = field(default_factory=Damage)
    not_understood: str = ""
    too_old: int = 0


class Sum:
    """All of them. Copies of one conversation, as hosts make when one is resumed, count once, at their longest."""

    def __init__(self) -> None:
        self.damage = Damage()
        self.not_understood: list[str] = []
        self.strangers: list[str] = []  # files of directories that are not transcripts
        self.too_old = self.copies = 0
        self._total = ReplayTotals()
        self._known: dict[str, ReplayTotals] = {}

    def add(self, outcomes: Outcomes) -> None:
        """Takes the outcomes of one unit of work in."""
        self.damage.lines += outcomes.damage.lines
        self.damage.first = self.damage.first or outcomes.damage.first
        self.too_old += outcomes.too_old
        for replayed in outcomes.replayed:
            if not replayed.first_call:
                self._total.add(replayed.totals)
                continue
            known = self._known.get(replayed.first_call)
            self.copies += known is not None
            if known is None or known.counts["calls"] < replayed.totals.counts["calls"]:
                self._known[replayed.first_call] = replayed.totals

    def total(self) -> ReplayTotals:
        """All of it added up. Once."""
        for totals in self._known.values():
            self._total.add(totals)
        self._known = {}
        return self._total
