"""What was saved, in one sentence: the same for a session and for all of them."""

from __future__ import annotations

from readcache.report.gain.totals import Totals
from readcache.report.page.markup import number, plural

DOLLARS = 3.0  # for a million tokens of input that no cache holds, as an example: the log names no model


def verdict_of(totals: Totals, price: float = DOLLARS) -> str:
    """As HTML: in money and turns. Each time the reader asked again for omitted lines cost a turn. `price`: dollars for
    a million tokens of input that no cache holds."""
    counts = totals.counts
    if would := counts["tokens_saved_if_on"]:
        return f"readcache only advised: it would have left out about {number(would)} tokens."
    if not totals.cuts:
        return "Nothing was left out."
    share = f"{100 * totals.chars_net / counts['output_chars']:.1f}&nbsp;% of what tools printed"
    turns = f"{plural(counts['bounces'], 'turn')} spent asking again"
    worth = f"{totals.priced_net:+,.0f} uncached input tokens"
    sign, money = "-" if totals.priced_net < 0 else "", abs(totals.priced_net) * price / 1e6
    return (
        f"{share} was left out, net of markers. After deducting {turns}, that is worth {worth}: "
        f"{sign}${money:,.3f} at ${price:g} a million."
    )
