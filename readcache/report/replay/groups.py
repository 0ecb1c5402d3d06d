"""Group the conversations of a replay: a row for each session, day or project."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from readcache.report import dollars, share
from readcache.report.replay.conversations import RECORDED
from readcache.report.replay.replay_totals import ReplayTotals
from readcache.report.replay.schedules import FEW, best_schedule

BY = ("session", "day", "project")
UNKNOWN = "unknown"
COST = 3  # the column of the cost
_LONGEST = {"name": 20, "model": 16}  # characters in the table


class ConversationGroup(NamedTuple):
    """The conversations of one session, day or project."""

    name: str
    totals: ReplayTotals

    @property
    def model(self) -> str:
        """The models that were used, the commonest first, without the dates of their prices."""
        counts = self.totals.models + self.totals.unpriced
        names = [name.partition(" (")[0] for name, _ in counts.most_common()]
        return names[0] + (f" +{len(names) - 1}" if names[1:] else "") if names else UNKNOWN

    @property
    def best(self) -> tuple[str, float] | None:
        """The best schedule, and the change of the bill that it would have made, as a share; None if none was
        tried."""
        strategies = self.totals.strategies
        if not strategies:
            return None
        spec = best_schedule(strategies)
        recorded = strategies[RECORDED, ""]["bill"]
        return spec, strategies[spec, ""]["bill"] / recorded - 1 if recorded else 0.0


def groups_by(by: str, conversations: Iterable[ReplayTotals]) -> list[ConversationGroup]:
    """Return the groups, the dearest first; days in order."""
    groups: dict[str, ReplayTotals] = {}
    for one in conversations:
        groups.setdefault(_name_of(by, one), ReplayTotals()).add(one)
    found = [ConversationGroup(name, totals) for name, totals in groups.items()]
    if by == "day":
        return sorted(found)
    return sorted(found, key=lambda one: (-one.totals.counts["bill"], -one.totals.counts["out"], one.name))


def _name_of(by: str, one: ReplayTotals) -> str:
    if by == "session":
        return one.name or UNKNOWN
    if by == "project":
        return one.directory.rstrip("/") or UNKNOWN
    try:
        return UNKNOWN if one.since is None else datetime.date.fromtimestamp(one.since).isoformat()
    except (OverflowError, ValueError, OSError):  # a broken clock
        return UNKNOWN


def group_heads(by: str, policies: Sequence[str]) -> tuple[str, ...]:
    """Return the headings of `group_cells`."""
    return (by, "model", "requests", "cost", *policies, "best schedule", "bill")


def group_cells(group: ConversationGroup, policies: Sequence[str]) -> tuple[str, ...]:
    """Return the cells of a row. The changes are shares of the bill; of the tool output, if the cost has a star."""
    counts, best = group.totals.counts, group.best
    cost = dollars(counts["bill"]) if counts["bill"] else "n/a*"
    cells = (_change(group.totals, name) for name in policies)
    schedule = (best[0], share(best[1], 1)) if best else ("none tried", "n/a")
    return (group.name, group.model, f"{counts['requests']:,}", cost, *cells, *schedule)


def _change(totals: ReplayTotals, policy: str) -> str:
    counts = totals.policies[policy].counts
    if totals.counts["bill"]:
        return share(-counts["saved_bill"], totals.counts["bill"])
    return share(-counts["saved"], totals.counts["out"])


def group_table(by: str, groups: Sequence[ConversationGroup], policies: Sequence[str]) -> list[Any]:
    """Return the parts of the text report: the table with a last row for all, and its notes."""
    everything = ReplayTotals()
    for group in groups:
        everything.add(group.totals)
    rows = [group_cells(group, policies) for group in (*groups, ConversationGroup("all", everything))]
    fitted = [(_fitted(name, "name"), _fitted(model, "model"), *rest) for name, model, *rest in rows]
    parts: list[Any] = [[group_heads(by, policies), *fitted]]
    if any(row[COST].endswith("*") for row in rows):
        parts.append("* no bill is known: the changes by presets are shares of the tool output")
    return [
        *parts,
        f"best schedule: the cheapest that misses {FEW}; the change of its bill",
    ]


def _fitted(text: str, what: str) -> str:
    """Return the text, shortened for the table. The end of a path tells it apart, and the beginning of an ID."""
    most = _LONGEST[what]
    if len(text) <= most:
        return text
    return "…" + text[1 - most :] if "/" in text else text[: most - 1] + "…"


def group_json(group: ConversationGroup, policies: Sequence[str]) -> dict[str, Any]:
    """Return a group's row as an object for JSON."""
    counts, best = group.totals.counts, group.best
    return {
        "name": group.name,
        "model": group.model,
        **{name: counts[name] for name in ("sessions", "calls", "requests", "bill", "out")},
        "policies": {
            name: {key: group.totals.policies[name].counts[key] for key in ("saved", "saved_bill")} for name in policies
        },
        "best": best and {"schedule": best[0], "change": best[1]},
    }
