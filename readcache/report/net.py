"""The net saving: one number that the table, its first line, the line for a status bar, the pages and JSON share.
Beside it, the fault rate.

Its unit is a token of input at full price, which no cache holds. Markers, lines that were asked for again, and the
turns that this cost are subtracted, so it may be negative.
"""

from __future__ import annotations

from typing import NamedTuple

from readcache.core.model.calls import MISSED
from readcache.report import share
from readcache.report.totals import Totals

ENOUGH_CALLS = 200  # judged calls: among fewer, one turn more or less decides whether the net saving is a loss
TOO_FEW = "too few calls to say what it is worth"
UNIT = "input tokens at full price"
OF_OUTPUT = "of the cost of tool output"
ESTIMATES = "Tokens are estimated from characters; omitted tokens by each session's Policy.count_tokens."


class Net(NamedTuple):
    """The net saving, and what all tool output cost. Both are in input tokens at full price."""

    tokens: int
    output: float

    @property
    def part(self) -> str:
        """The net saving as a share of the cost of tool output."""
        return share(self.tokens, self.output)


def net_of(totals: Totals) -> Net | None:
    """Return the net saving of these calls, or None if they are too few to say."""
    if totals.counts["calls"] < ENOUGH_CALLS:
        return None
    return Net(round(totals.sums["priced_net"]), totals.sums["priced_output"])


def net_sentence(totals: Totals, price: float | None = None) -> str:
    """Return the result as a sentence. `price`: dollars for a million input tokens, to add money."""
    net = net_of(totals)
    if would := _advised(totals):
        return f"readcache only advises: it would have omitted about {would:,} tokens."
    if net is None:
        return f"There are {TOO_FEW}. readcache omitted {_omitted(totals)}."
    kind, part = "loss" if net.tokens < 0 else "saving", net.part.lstrip("-")
    money = "" if price is None else f", ${abs(net.tokens) * price / 1e6:,.2f}"
    return f"The net {kind} is {abs(net.tokens):,} {UNIT}, {part} {OF_OUTPUT}{money}."


def net_paragraph(totals: Totals, price: float | None = None) -> str:
    """Return the result as a sentence, and the coverage as another."""
    return f"{net_sentence(totals, price)} readcache judged {coverage_of(totals)}."


def coverage_of(totals: Totals) -> str:
    """Return the coverage: calls judged, of calls seen."""
    count = totals.counts["calls"]
    return f"{count:,} of {count + totals.counts[MISSED]:,} calls"


def short_line(totals: Totals | None, when: str = " today") -> str:
    """Return the result in one line, for a status bar. `totals`: None if there is no store. `when`: the end of the
    line."""
    if totals is None:
        return "readcache: no calls yet"
    if not totals.counts["calls"] + totals.counts[MISSED]:
        return f"readcache: no calls yet{when}"
    net, seen = net_of(totals), f"{coverage_of(totals)} judged{when}"
    if would := _advised(totals):
        return f"readcache only advises: about {would:,} tokens would be omitted, {seen}"
    if net is None:
        return f"readcache: {_omitted(totals)} omitted, {TOO_FEW}, {seen}"
    return f"readcache: net {net.tokens:+,} {UNIT}, {net.part} {OF_OUTPUT}, {seen}"


def fault_rates(totals: Totals) -> dict[str, str]:
    """Return the faults for each 1,000 markers, and for each 1,000 judged calls (see `faults`)."""
    faults, of = totals.sums["faults"], {"markers": totals.sums["markers"], "calls": totals.counts["calls"]}
    return {name: f"{1000 * faults / count:.1f}" if count else "n/a" for name, count in of.items()}


def _omitted(totals: Totals) -> str:
    part = f"{share(totals.chars_net, totals.counts['output_chars'])} of tool output"
    return part if totals.sums["results_cut"] else "nothing"


def _advised(totals: Totals) -> int:
    """Return the tokens that would have been omitted, if nothing was."""
    return 0 if totals.sums["results_cut"] else totals.counts["tokens_saved_if_on"]
