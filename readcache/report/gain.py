"""Report savings: a table, and a JSON object with the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from readcache.report import COUNTERS, bars_caption, many, share
from readcache.report.answered import AnsweredCall
from readcache.report.log_check import MOST_NAMED
from readcache.report.net import (
    ESTIMATES,
    OF_OUTPUT,
    TOO_FEW,
    UNIT,
    Net,
    coverage_of,
    fault_rates,
    net_of,
    net_sentence,
)
from readcache.report.totals import Gain, Totals

SUMS = tuple(AnsweredCall(0, "", "", "", "").sums())  # the names of the other sums
WIDTH = 100  # columns; a narrow terminal has fewer
LABEL, CELL = 36, 11  # columns of a row's name, and the least for each span of days
NAME, NUMBERS, BAR = 24, 53, 30  # columns of a group: the least for its name, for its numbers, the most for its bar
MOST_ROWS = 31  # groups, if the query is for one dimension
FEW_ROWS = 8  # groups, if the query is for several dimensions
FULL_BLOCK, ASCII_BLOCK = "█", "#"
LEVELS = {FULL_BLOCK: " ▁▂▃▄▅▆▇█", ASCII_BLOCK: " .:-=+*#@"}  # for a day's savings; the lowest is none
DAYS = 30  # in the line of savings by day

Table = list[tuple[str | int, ...]]


def gain_json(gain: Gain, price: float | None = None) -> dict[str, Any]:
    """Return the report as one JSON object. `net` is None if there are too few calls. `counters` has the counters of
    `readcache stats --json`. `price`: money for a million tokens of input."""
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
    counters = dict.fromkeys(COUNTERS, 0) | {name: count for name, count in sorted(totals.counts.items()) if count}
    money = {} if price is None else {"money": round(totals.sums["priced_net"] * price / 1e6, 6)}
    found = net_of(totals)
    net = found and {"input_tokens": found.tokens, "share_of_tool_output": round(found.tokens / (found.output or 1), 4)}
    return {"net": net, "counters": counters, **{name: round(totals.sums[name], 2) for name in SUMS}, **money}


def gain_table(
    gain: Gain, *, price: float | None = None, block: str = FULL_BLOCK, width: int = WIDTH
) -> Iterator[str | Table]:
    """Yield the report: lines, and tables whose first row is the heading.

    `price`: dollars for a million tokens of input that no cache holds. `block`: a character for bars. `width`: in
    columns; lines of text may be longer."""
    yield from _head(gain, price)
    if gain.sessions:
        yield ""
        yield _sums(gain, price, width)
        if net_of(gain.total) is None:
            yield TOO_FEW
        if len(gain.by) > 1 and "day" in gain.by:
            days = min(DAYS, width - 24)
            bars, most = _spark(gain, LEVELS[block], days)
            yield f"omitted, last {days} days |{bars}|"
            yield f"  {bars_caption('tokens a day', f'{most:,}')}"
        for dimension, groups in gain.by.items():
            if dimension != "day" or len(gain.by) == 1:
                yield ""
                yield from _bars(dimension, groups, block, MOST_ROWS if len(gain.by) == 1 else FEW_ROWS, width)
        yield ""
    yield from _proof(gain)


def _sums(gain: Gain, price: float | None, width: int) -> Table:
    """Return a table of the sums, for as many of the longest spans of days as there is room for."""
    size = min(LABEL, width - CELL)
    windows = list(gain.windows.items())[-((width - size) // CELL) :]
    heading = ("", *(name if len(gain.windows) > 1 else "" for name, _ in windows))
    sums = [totals for _, totals in windows]
    return [heading, *((_fitted(label, size), *map(cell, sums)) for label, cell in _rows(gain, price))]


def _proof(gain: Gain) -> Iterator[str]:
    """Yield the number of markers that the log proves. Then yield the rows that could not be read from the store, and
    the kinds of calls that were never in it."""
    proof = gain.proof
    yield f"omissions checked: {proof.proven:,} of {proof.markers:,} markers stand for lines that were visible then"
    yield from (f"NOT PROVEN: {fault}" for fault in proof.faults)
    if (more := proof.markers - proof.proven - len(proof.faults)) > 0:
        yield f"NOT PROVEN: {more:,} more"
    if gain.damaged:
        yield f"damaged rows of the store, left aside with what they would have counted: {len(gain.damaged):,}"
        yield from gain.damaged[:MOST_NAMED]
    if doors := [host for host in ("run", "shims") if host in gain.hosts]:
        yield f"not counted: commands that neither read nor write a file: not recorded by {' or '.join(doors)}"


def _head(gain: Gain, price: float | None) -> Iterator[str]:
    if not gain.sessions:
        yield "no calls in that time" if gain.asked.has_bounds else "no calls yet"
        return
    yield net_sentence(gain.total, price)
    since = f" since {gain.first.isoformat()}" if gain.first else ""
    yield f"readcache judged {coverage_of(gain.total)} in {many(len(gain.sessions), 'session')}{since}."
    yield from gain.coverage()
    yield ESTIMATES


def _rows(gain: Gain, price: float | None) -> Iterator[tuple[str, Callable[[Totals], str]]]:
    counts = gain.total.counts
    yield "calls judged", _count("calls")
    if counts["removed_chars"]:
        yield "  re-read after compaction", _count("reread_calls")
        yield "    answered by the restored section", _count("reread_answered")
    yield "  re-reads of visible lines", _sum("rereads_in_view")
    yield "    of these, shortened", _sum("rereads_in_view_answered")
    yield (
        "  shortened, then asked for again",
        lambda t: f"{t.counts['bounces']:,} ({share(t.counts['bounces'], t.sums['results_cut'])})",
    )
    yield "fault rate, per 1,000 markers", lambda t: fault_rates(t)["markers"]
    yield "fault rate, per 1,000 calls", lambda t: fault_rates(t)["calls"]
    yield "prompt caches broken by a marker", _count("cache_writes")
    yield "tool output, characters", _count("output_chars")
    yield "results shortened", _sum("results_cut")
    if counts["unconfirmed"]:
        yield "  unconfirmed, counted as full", _count("unconfirmed")
    yield "omitted tokens, less the markers", lambda t: f"{t.saved:,}"
    yield "  asked for again", lambda t: _less(t.counts["tokens_bounced"])
    yield "  left", _count("tokens_saved")
    yield "    of the shortened results", lambda t: share(t.chars_net, t.sums["results_cut_chars"])
    yield "    of all tool output", lambda t: share(t.chars_net, t.counts["output_chars"])
    if counts["removed_chars"]:
        yield "characters removed later", _count("removed_chars")
    if counts["tokens_saved_if_on"]:
        yield "only advised, not omitted: tokens", _count("tokens_saved_if_on")
    for cause in ("internal_error", "store_failed"):
        if counts[cause]:
            yield f"shown in full after {cause}", _count(cause)
    if net_of(gain.total) is not None:
        yield from _worth(price)


def _worth(price: float | None) -> Iterator[tuple[str, Callable[[Totals], str]]]:
    """Yield the rows that end in the net saving. Their cells say so if there are too few calls."""
    rows: list[tuple[str, Callable[[Totals, Net], str]]] = [
        (f"saved, {UNIT}", lambda t, _: f"{t.sums['priced_tokens']:,.0f}"),
        ("  asked for again", lambda t, _: _less(t.sums["priced_bounced"])),
        ("  a turn for each request again", lambda t, _: _less(t.sums["priced_turns"])),
        (f"net, {UNIT}", lambda _, net: f"{net.tokens:,}"),
        (f"net, {OF_OUTPUT}", lambda _, net: net.part),
    ]
    if price is not None:
        rows.append((f"net, dollars at {price:g} a million", lambda _, net: f"{net.tokens * price / 1e6:,.2f}"))
    for label, cell in rows:
        yield label, lambda t, cell=cell: cell(t, net) if (net := net_of(t)) else "too few"  # type: ignore[misc]


def _count(name: str) -> Callable[[Totals], str]:
    return lambda totals: f"{totals.counts[name]:,}"


def _sum(name: str) -> Callable[[Totals], str]:
    return lambda totals: f"{totals.sums[name]:,}"


def _spark(gain: Gain, levels: str, count: int) -> tuple[str, int]:
    """Return a bar for each of the last days, and the tokens of the highest one."""
    days = (gain.asked.today - timedelta(days=ago) for ago in range(count - 1, -1, -1))
    saved = [by_day.counts["tokens_saved"] if (by_day := gain.by["day"].get(day.isoformat())) else 0 for day in days]
    most = max([0, *saved])
    return "".join(levels[-(-max(0, one) * (len(levels) - 1) // max(most, 1))] for one in saved), most


def _bars(dimension: str, groups: Mapping[str, Totals], block: str, most: int, width: int) -> Iterator[str | Table]:
    names = sorted(groups, key=lambda name: (-groups[name].counts["tokens_saved"], name))
    names = [*sorted(groups)[-most:]] if dimension == "day" else names
    has_sizes, spare = width >= NAME + NUMBERS, max(0, width - WIDTH)
    space = NAME + spare if has_sizes else width - 26
    long = min(BAR, width - space - NUMBERS) if has_sizes else 0
    longest = max((totals.counts["tokens_saved"] for totals in groups.values()), default=0)
    sizes: tuple[str | int, ...] = ("calls", "output") if has_sizes else ()
    rows: Table = [(f"{'by ' + dimension:{space}}", *sizes, "omitted, tokens", "of output", "")]
    for name in names[:most]:
        totals = groups[name]
        saved, out = totals.counts["tokens_saved"], totals.counts["output_chars"]
        bar = block * max(saved > 0, round(long * saved / longest)) if long > 0 and longest > 0 else ""
        sizes = (totals.counts["calls"], out) if has_sizes else ()
        rows.append((f"  {_fitted(name, space - 3)}", *sizes, saved, share(totals.chars_net, out), bar))
    yield rows
    if long > 0 and longest > 0:
        yield f"  {bars_caption('tokens omitted', f'{longest:,}')}"
    if (rest := len(groups) - most) > 0:
        yield f"  and {rest:,} more: --by {dimension} --json has them all"


def _less(tokens: float) -> str:
    """Return the number with a minus sign, because it is subtracted."""
    return f"{-tokens:,.0f}" if round(tokens) else "0"


def _fitted(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 2] + ".."
