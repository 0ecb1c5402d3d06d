"""What a replay found, for programs: the same numbers as the table, unrounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from readcache.report.replay.replay_totals import PolicyTotals, Sum, ranked
from readcache.report.replay.verdict import verdict


def replay_json(found: Sum, policies: Sequence[str]) -> dict[str, Any]:
    """One JSON-able object."""
    total = found.total()
    return {
        "verdict": list(verdict(total, policies)),
        "counts": dict(total.counts),
        "formats": dict(total.forms),
        "tools": {
            name: {"calls": calls, "characters": total.out_by_tool[name]} for name, calls in ranked(total.calls_by_tool)
        },
        "policies": {name: _policy(total.policies.get(name, PolicyTotals())) for name in policies},
        "models": dict(total.models),
        "unpriced": dict(total.unpriced),
        "conversation": {spec: dict(counts) for spec, counts in total.strategies.items()},
        "together": {
            spec: {name: dict(counts) for name, counts in pairs.items()} for spec, pairs in total.together.items()
        },
        "left_aside": {
            "too_old": found.too_old,
            "copies": found.copies,
            "no_transcripts": len(found.strangers),
            "damaged_lines": found.damage.lines,
            "first_damaged": found.damage.first,
            "not_understood": found.not_understood,
        },
    }


def _policy(totals: PolicyTotals) -> dict[str, Any]:
    return {
        **totals.counts,
        "by_tool": dict(totals.by_tool),
        "wrong_ones": totals.wrong,
    }
