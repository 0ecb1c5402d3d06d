"""What was saved, for programs: one JSON-able object, with the numbers of the table before rounding."""

from __future__ import annotations

from typing import Any

from readcache.report.gain.totals import Gain, Totals

# Of the counters of `Session.stats` those that are numbers of calls, characters and tokens; the others are reasons.
SUMS = (
    *("calls", "output_chars", "shown_chars", "tokens_saved", "bounces", "tokens_bounced"),
    *("removed_chars", "reread_calls", "reread_answered", "turns_avoided", "cache_writes", "tokens_saved_if_on"),
    "missed",
)


def gain_json(gain: Gain, price: float | None = None) -> dict[str, Any]:
    """One object. `counters` are those of `readcache stats --json`. `price`: money for a million tokens of input."""
    return {
        "sessions": len(gain.sessions),
        "first_day": gain.first.isoformat() if gain.first else None,
        "windows": {name: _object(totals, price) for name, totals in gain.windows.items()},
        **{
            f"by_{dimension}": {name: _object(totals, price) for name, totals in sorted(groups.items())}
            for dimension, groups in gain.by.items()
        },
        "checked": {name: getattr(gain.proof, name) for name in ("markers", "proven", "faults")},
        "damaged_rows": gain.damaged,
    }


def _object(totals: Totals, price: float | None) -> dict[str, Any]:
    sums = _sums(totals, price)
    counters = {name: totals.counts[name] for name in SUMS} | {n: c for n, c in sorted(totals.counts.items()) if c}
    return {"counters": counters, **{name: value for name, value in sums.items() if name not in SUMS}}


def _sums(totals: Totals, price: float | None) -> dict[str, float]:
    """Characters and tokens by name; what is priced is in those of uncached input."""
    sums: dict[str, float] = {name: totals.counts[name] for name in SUMS}
    sums |= {
        "results_cut": totals.shortened,
        "rereads_in_view": totals.rereads_in_view,
        "rereads_in_view_answered": totals.rereads_in_view_answered,
        "results_cut_chars": totals.shortened_chars,
        "chars_saved": totals.chars_saved,
        "chars_bounced": totals.chars_bounced,
        "priced_tokens": round(totals.priced_tokens, 2),
        "priced_bounced": round(totals.priced_bounced, 2),
        "priced_turns": round(totals.priced_turns, 2),
        "priced_net": round(totals.priced_net, 2),
        "priced_chars_net": round(totals.priced_chars, 2),
        "priced_output_chars": round(totals.priced_output, 2),
    }
    return sums if price is None else sums | {"money": round(totals.priced_net * price / 1e6, 6)}
