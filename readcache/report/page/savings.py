"""The pages of `gain` and `replay`: savings, and the savings that recorded conversations would have had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from readcache.core.model.policy import CHARS_PER_TOKEN
from readcache.core.model.reply import Reason
from readcache.report.page.html import (
    HEIGHT,
    Bar,
    Row,
    bar_table,
    brief,
    drawn_path,
    escaped,
    height_of,
    lengths,
    number,
    plot,
    plural,
    ticks,
    whole_page,
)
from readcache.report.totals import Gain, Totals, coverage_of

DOLLARS = 3.0  # for a million tokens of input that no cache holds: an example, because the log names no model
MOST_DAYS = 366  # in the drawing: the last ones
MOST_LABELS = 6  # below the drawing
OPEN_ROWS = 20  # rows that are visible before the list is unfolded
_HEADS = ("calls", "saved, tokens", "of output")
_TITLES = {"session": "Each session", "host": "By host", "tool": "By tool", "reason": "By reason"}
MOST_TOOLS = 20
Counts = Counter[str]
# (label, count, the count for a share; "": no share)
_MEASURES = (
    ("of all tool output", "saved", "out"),
    ("less what bounced", "kept", "out"),
    ("priced while carried", "saved_priced", "out_priced"),
    ("of all input, by usage fields", "saved_input", "prompt"),
    ("of the bill, by usage fields", "saved_bill", "bill"),
    ("results with something left out", "omissions", ""),
    ("bounces: asked for again at once", "bounces", ""),
    ("wrong omissions, each one checked", "wrong", ""),
)


def verdict_of(totals: Totals, price: float = DOLLARS) -> str:
    """Return the verdict on the savings as HTML, in money and turns. Each immediate reread cost a turn. `price`:
    dollars for a million tokens of input that no cache holds."""
    counts = totals.counts
    if would := counts["tokens_saved_if_on"]:
        return f"readcache only advised: it would have left out about {number(would)} tokens."
    if not totals.sums["results_cut"]:
        return "Nothing was left out."
    share = f"{100 * totals.chars_net / counts['output_chars']:.1f}&nbsp;% of what tools printed"
    turns = f"{plural(counts['bounces'], 'turn')} spent asking again"
    worth = f"{totals.sums['priced_net']:+,.0f} uncached input tokens"
    sign, money = "-" if totals.sums["priced_net"] < 0 else "", abs(totals.sums["priced_net"]) * price / 1e6
    return (
        f"{share} was left out, net of markers. After deducting {turns}, that is worth {worth}: "
        f"{sign}${money:,.3f} at ${price:g} a million."
    )


def gain_page(gain: Gain, price: float | None = None) -> Iterator[str]:
    """Return the page of `gain` in parts. `price`: dollars for a million tokens of input that no cache holds; None: the
    example `DOLLARS`."""
    about = {"sessions": number(len(gain.sessions)), "calls": number(gain.total.counts["calls"])}
    if gain.first:
        about["since"] = gain.first.isoformat()
    footer = (
        "Tokens are estimates: by each session's Policy.count_tokens, else a quarter of the characters. Saved: net of "
        "markers, and of what was asked for again at once. `readcache report SESSION` shows a session call by call."
    )
    return whole_page("gain", "What readcache saved", about, _gain_main(gain, price), footer)


def _gain_main(gain: Gain, price: float | None) -> Iterator[str]:
    yield f'<h2>Totals</h2>\n<p class="verdict">{verdict_of(gain.total, DOLLARS if price is None else price)}</p>\n'
    yield from (
        f'<p class="note">{escaped(line)}.</p>' for line in coverage_of(gain.missed, gain.total.counts["calls"])
    )
    proof = gain.proof
    yield f"<p>Omissions checked: {number(proof.proven)} of {plural(proof.markers, 'marker')} stand for lines that "
    yield "were visible then.</p>\n"
    yield from (f'<p class="note">Not proven: {escaped(fault)}</p>' for fault in proof.faults)
    if len(gain.windows) > 1:
        yield from bar_table(("when", *_HEADS), _rows(gain.windows, [*gain.windows]))
    if days := gain.by.get("day"):
        yield "<h2>Saved by day</h2>\n"
        yield from _days(days, gain.asked.today)
    for dimension, title in _TITLES.items():
        if groups := gain.by.get(dimension):
            yield from _groups(title, dimension, groups)


def _days(groups: Mapping[str, Totals], today: date) -> Iterator[str]:
    last = max(today, date.fromisoformat(max(groups)))
    first = max(date.fromisoformat(min(groups)), last - timedelta(days=MOST_DAYS - 1))
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    saved = [max(0, _saved(groups[day.isoformat()])) if day.isoformat() in groups else 0 for day in days]
    scale = ticks(max(saved))
    columns = "".join(
        f"M{n}.1 {HEIGHT}V{height_of(tokens, scale)}h.8V{HEIGHT}z" for n, tokens in enumerate(saved) if tokens
    )
    step = -(-len(days) // MOST_LABELS)
    below = [(n + 0.5, days[n].strftime("%d %b")) for n in range(0, len(days), step)]
    best = days[saved.index(max(saved))]
    label = f"Tokens saved on each of {number(len(days))} days: at most {number(max(saved))}, on {best.isoformat()}"
    yield from plot(len(days), scale, label, drawn_path("left", columns), (), ("tokens saved", ""), below)
    yield '<details class="more"><summary>each day</summary>'
    yield from bar_table(("day", *_HEADS), _rows(groups, sorted(groups, reverse=True)))
    yield "</details>\n"


def _groups(title: str, dimension: str, groups: Mapping[str, Totals]) -> Iterator[str]:
    names = sorted(groups, key=lambda name: (-_saved(groups[name]), name))
    rows = [*_rows(groups, names)]
    yield f"<h2>{title}</h2>\n"
    yield from bar_table((dimension, *_HEADS), rows[:OPEN_ROWS])
    if rows[OPEN_ROWS:]:
        yield f'<details class="more"><summary>{number(len(rows) - OPEN_ROWS)} more</summary>'
        yield from bar_table((dimension, *_HEADS), rows[OPEN_ROWS:])
        yield "</details>\n"


def _rows(groups: Mapping[str, Totals], names: list[str]) -> Iterator[tuple[Bar | str, ...]]:
    why = {reason.value: reason.why for reason in Reason}
    for name, length in zip(names, lengths([_saved(groups[name]) for name in names]), strict=True):
        totals = groups[name]
        output = totals.counts["output_chars"]
        share = f"{100 * totals.chars_net / output:.1f} %" if output else "n/a"
        head = Bar(name.replace("_", " ") if name in why else name, length, why.get(name, ""))
        yield head, number(totals.counts["calls"]), number(_saved(totals)), share


def _saved(totals: Totals) -> int:
    return totals.counts["tokens_saved"]


def replay_page(found: Mapping[str, Any]) -> Iterator[str]:
    """Return the page of `replay` in parts. `found`: the object that `readcache replay --json` prints."""
    counts = found["counts"]
    about = {
        "conversations": number(counts.get("sessions", 0)),
        "calls": number(counts.get("calls", 0)),
        "characters of tool output": number(counts.get("out", 0)),
        "formats": ", ".join(found["formats"]),
    }
    footer = "A recording does not react: nobody knows what the model would have done. docs/replay.md says what counts."
    return whole_page("replay", "What readcache would have saved", about, _replay_main(found), footer)


def _replay_main(found: Mapping[str, Any]) -> Iterator[str]:
    yield "<h2>What to switch on</h2>\n"
    for sentence in found["verdict"]:
        said, _, line = sentence.partition("\n")
        yield f'<p class="verdict">{escaped(said)}</p>\n'
        yield f'<pre tabindex="0"><code>{escaped(line.strip())}</code></pre>\n' if line else ""
    if not found["counts"].get("calls"):
        return
    yield "<h2>Policies side by side</h2>\n"
    yield from _policies(Counter(found["counts"]), found["policies"])
    if found["conversation"]:
        yield "<h2>Ways of keeping a conversation</h2>\n"
        yield from _strategies(found["conversation"], found.get("together", {}))
    yield "<h2>Saved, by tool</h2>\n"
    yield from _tools(found["tools"], found["policies"])


def _policies(total: Counts, policies: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    runs: list[Counts] = [Counter({**total, **counts}) for counts in policies.values()]
    for run in runs:
        run["kept"] = run["saved"] - CHARS_PER_TOKEN * run["tokens_bounced"]
    rows: list[Row] = []
    for label, name, total_of in _MEASURES:
        if not total_of:
            rows.append((label, *(number(run[name]) for run in runs)))
        elif all(run[total_of] for run in runs):
            shares = [run[name] / run[total_of] for run in runs]
            cells = zip(shares, lengths(shares), strict=True)
            rows.append((label, *(Bar(f"{100 * share:.1f} %", length) for share, length in cells)))
    yield from bar_table(("saved", *policies), rows)
    for name, counts in policies.items():
        yield from (f'<p class="note">Wrong, {escaped(name)}: {escaped(fault)}</p>\n' for fault in counts["wrong_ones"])


def _strategies(strategies: Mapping[str, Counts], together: Mapping[str, Mapping[str, Counts]]) -> Iterator[str]:
    named = {spec: Counter(counts) for spec, counts in strategies.items()}
    none = named["none"]
    yield f"<p>{plural(none['sessions'], 'conversation')}. The bill is that of all requests, beside that of a "
    yield "conversation from which nothing leaves. Each missed need costs a turn.</p>\n"
    bills = [counts["bill"] / none["bill"] for counts in named.values()]
    rows: list[Row] = []
    for (name, counts), bill, length in zip(named.items(), bills, lengths(bills), strict=True):
        missed = (number(counts[key]) for key in ("turns", "missed", "rereads_missed"))
        rows.append((Bar(name, length, kind="asked1"), f"{100 * bill:.1f} %", *missed))
    yield from bar_table(("way", "bill", "turns", "needs missed", "re-reads"), rows)
    policies = list(dict.fromkeys(name for pairs in together.values() for name in pairs))
    shares = {
        spec: [counts["bill"] / none["bill"] for counts in (named[spec], *(pairs[name] for name in policies))]
        for spec, pairs in together.items()
    }
    most = max((max(some) for some in shares.values()), default=1)
    rows = [
        (spec, *(Bar(f"{100 * bill:.1f} %", bill / most, kind="asked1") for bill in some))
        for spec, some in shares.items()
    ]
    if rows:
        yield "<h3>The bill, with a policy as well</h3>\n"
        yield from bar_table(("way", "alone", *policies), rows)


def _tools(tools: Mapping[str, Mapping[str, int]], policies: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    names = sorted(tools, key=lambda name: (-tools[name]["characters"], name))[:MOST_TOOLS]
    saved = [[counts["by_tool"].get(name, 0) for counts in policies.values()] for name in names]
    rows: list[Row] = []
    for name, by_policy, length in zip(names, saved, lengths([max(one) for one in saved]), strict=True):
        sizes = number(tools[name]["calls"]), brief(tools[name]["characters"])
        rows.append((Bar(name, length), *sizes, *map(brief, by_policy)))
    yield from bar_table(("tool", "calls", "characters", *policies), rows)
    if len(tools) > MOST_TOOLS:
        yield f"<p>And {plural(len(tools) - MOST_TOOLS, 'more tool')}: --json has them all.</p>\n"
