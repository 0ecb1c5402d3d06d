"""The totals of replays. They are plain counters: workers send them to the parent process, which adds them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from readcache.transcripts.records import Damage

MOST_NAMED = 5  # wrong omissions that are named
# The counts of every total. JSON has each of them, even if it is 0.
COUNTS = (
    *("sessions", "readers", "calls", "out", "reads", "read", "bound", "reread", "held", "cuts", "restored"),
    *("plan_tokens", "prompt", "bill", "requests", "billed_sessions", "long", "long_bill"),
)
# The session's counters of immediate rereads and of failures of readcache.
FROM_SESSION = ("bounces", "tokens_bounced", "internal_error", "store_failed")
POLICY_COUNTS = (
    *("saved", "omissions", "cut", "markers", "wrong", "saved_priced", "out_priced", "turns_priced"),
    *("saved_input", "saved_bill", "chars_bounced", *FROM_SESSION),
)


def zeros(names: Iterable[str]) -> Counter[str]:
    """Return a counter that has each of these names, with 0."""
    return Counter(dict.fromkeys(names, 0))


def ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return the names and their counts, the highest count first, equal counts by name."""
    # Workers end in any order, and the printed report must not depend on it.
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


@dataclass(slots=True)
class PolicyTotals:
    """The totals of one policy. `counts`: see `policy_run`. `by_tool`: characters saved by tool, net of markers."""

    counts: Counter[str] = field(default_factory=lambda: zeros(POLICY_COUNTS))
    by_tool: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: PolicyTotals) -> None:
        """Add the totals of another replay."""
        self.counts.update(other.counts)
        self.by_tool.update(other.by_tool)
        self.wrong = (self.wrong + other.wrong)[:MOST_NAMED]


@dataclass(slots=True)
class ReplayTotals:
    """The totals of one conversation, or of many."""

    counts: Counter[str] = field(default_factory=lambda: zeros(COUNTS))
    forms: Counter[str] = field(default_factory=Counter)
    calls_by_tool: Counter[str] = field(default_factory=Counter)
    out_by_tool: Counter[str] = field(default_factory=Counter)
    policies: defaultdict[str, PolicyTotals] = field(default_factory=lambda: defaultdict(PolicyTotals))
    models: Counter[str] = field(default_factory=Counter)  # conversations by model, with the date of its prices
    unpriced: Counter[str] = field(default_factory=Counter)  # conversations with usage fields, by unpriced model
    strategies: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)  # as `Conversations.end`
    turns: defaultdict[str, Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )  # as `TurnKinds`, by host
    turn_bills: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    # Of one conversation, as in its `Recording`: the ID of its first call, its name, directory and start.
    first_call: str = ""
    name: str = ""
    directory: str = ""
    since: float | None = None

    def add(self, other: ReplayTotals) -> None:
        """Add the totals of another replay."""
        for name in ("counts", "forms", "calls_by_tool", "out_by_tool", "models", "unpriced"):
            getattr(self, name).update(getattr(other, name))
        for strategy, counts in other.strategies.items():
            self.strategies.setdefault(strategy, Counter()).update(counts)
        for name, policy in other.policies.items():
            self.policies[name].add(policy)
        for host, turns in other.turns.items():
            self.turns[host].update(turns)
            self.turn_bills[host].update(other.turn_bills[host])


@dataclass(slots=True)
class Outcomes:
    """The outcomes of one unit of work."""

    replayed: list[ReplayTotals] = field(default_factory=list)
    damage: Damage = field(default_factory=Damage)
    not_understood: str = ""
    too_old: int = 0


class Sum:
    """The sum of all outcomes, added in the order of their files.

    Hosts copy a conversation when it is resumed. Only one copy counts: the one with the most output, then with the most
    requests that have usage fields, then with the most calls, then the first."""

    def __init__(self) -> None:
        self.damage = Damage()
        self.not_understood: list[str] = []
        self.strangers: list[str] = []  # files in directories that are not transcripts
        self.too_old = self.copies = 0
        self._found: list[ReplayTotals] = []  # conversations whose copies cannot be recognised
        self._known: dict[str, ReplayTotals] = {}

    def add(self, outcomes: Outcomes) -> None:
        """Add the outcomes of one unit of work."""
        self.damage.lines += outcomes.damage.lines
        self.damage.first = self.damage.first or outcomes.damage.first
        self.too_old += outcomes.too_old
        for replayed in outcomes.replayed:
            if not replayed.first_call:
                self._found.append(replayed)
                continue
            known = self._known.get(replayed.first_call)
            self.copies += known is not None
            if known is None or _worth(known) < _worth(replayed):
                self._known[replayed.first_call] = replayed

    @property
    def conversations(self) -> list[ReplayTotals]:
        """The totals of each conversation. Each counts once."""
        return [*self._found, *self._known.values()]

    def total(self) -> ReplayTotals:
        """Return the totals of all conversations."""
        total = ReplayTotals()
        for one in self.conversations:
            total.add(one)
        return total


def _worth(copy: ReplayTotals) -> tuple[int, int, int]:
    return copy.counts["out"], copy.counts["requests"], copy.counts["calls"]
