"""The pages of `gain` and `replay`: savings, and the savings that recorded conversations would have had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import chain

from readcache.core.model.reply import Reason
from readcache.report import bars_caption, share
from readcache.report.net import ESTIMATES, UNIT, fault_rates, net_of, net_paragraph
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
from readcache.report.replay.conversations import StrategyCounts
from readcache.report.replay.groups import group_cells, group_heads, groups_by
from readcache.report.replay.output import NO_FAULT_RATE, savings, turn_hosts, verdict
from readcache.report.replay.replay_totals import PolicyTotals, ReplayTotals, Sum, ranked
from readcache.report.replay.schedules import BEST_NOTE, schedule_rows
from readcache.report.replay.turns import settings, turn_rows
from readcache.report.totals import Gain, Totals

MOST_DAYS = 366  # in the drawing: the last ones
MOST_LABELS = 6  # below the drawing
OPEN_ROWS = 20  # rows that are visible before the list is unfolded
_HEADS = ("calls", "omitted, tokens", "of output")
_TITLES = {"session": "Each session", "host": "By host", "tool": "By tool", "reason": "By reason"}
MOST_TOOLS = 20
_STRATEGY_HEADS = ("turns", "needs missed", "re-reads")  # there is no room for all columns of the table


def gain_page(gain: Gain, price: float | None = None) -> Iterator[str]:
    """Return the page of `gain` in parts. `price`: dollars for a million input tokens, to show money."""
    about = {"sessions": number(len(gain.sessions)), "calls": number(gain.total.counts["calls"])}
    if gain.first:
        about["since"] = gain.first.isoformat()
    footer = (
        f"{ESTIMATES} Omitted: less the markers and what was asked for again. "
        "`readcache report SESSION` shows a session call by call."
    )
    return whole_page("gain", "What readcache saved", about, _gain_main(gain, price), footer)


def _gain_main(gain: Gain, price: float | None) -> Iterator[str]:
    yield f'<h2>Totals</h2>\n<p class="verdict">{net_paragraph(gain.total, price)}</p>\n'
    yield from (f'<p class="note">{escaped(line)}.</p>' for line in gain.coverage())
    proof = gain.proof
    yield f"<p>Omissions checked: {number(proof.proven)} of {plural(proof.markers, 'marker')} stand for lines that "
    yield "were visible then.</p>\n"
    yield from (f'<p class="note">Not proven: {escaped(fault)}</p>' for fault in proof.faults)
    rates = ", ".join(f"{rate} per 1,000 {of}" for of, rate in fault_rates(gain.total).items())
    yield f"<p>Fault rate: {rates}.</p>\n"
    if len(gain.windows) > 1:
        nets = [net_of(totals) for totals in gain.windows.values()]
        rows = zip(_rows(gain.windows, [*gain.windows]), nets, strict=True)
        whole = [(*row, "too few calls" if net is None else number(net.tokens)) for row, net in rows]
        yield from bar_table(("when", *_HEADS, f"net, {UNIT}"), whole, _caption(gain.windows))
    if days := gain.by.get("day"):
        yield "<h2>Omitted by day</h2>\n"
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
    label = f"Tokens omitted on each of {number(len(days))} days: at most {number(max(saved))}, on {best.isoformat()}"
    yield from plot(len(days), scale, label, drawn_path("left", columns), (), ("tokens omitted", ""), below)
    yield '<details class="more"><summary>each day</summary>'
    yield from bar_table(("day", *_HEADS), _rows(groups, sorted(groups, reverse=True)), _caption(groups))
    yield "</details>\n"


def _groups(title: str, dimension: str, groups: Mapping[str, Totals]) -> Iterator[str]:
    names = sorted(groups, key=lambda name: (-_saved(groups[name]), name))
    rows = [*_rows(groups, names)]
    yield f"<h2>{title}</h2>\n"
    yield from bar_table((dimension, *_HEADS), rows[:OPEN_ROWS], _caption(groups))
    if rows[OPEN_ROWS:]:
        yield f'<details class="more"><summary>{number(len(rows) - OPEN_ROWS)} more</summary>'
        yield from bar_table((dimension, *_HEADS), rows[OPEN_ROWS:], _caption(groups))
        yield "</details>\n"


def _caption(groups: Mapping[str, Totals]) -> str:
    most = max(map(_saved, groups.values()), default=0)
    return bars_caption("tokens omitted", number(most)) if most > 0 else ""


def _rows(groups: Mapping[str, Totals], names: list[str]) -> Iterator[tuple[Bar | str, ...]]:
    why = {reason.value: reason.why for reason in Reason}
    for name, length in zip(names, lengths([_saved(groups[name]) for name in names]), strict=True):
        totals = groups[name]
        output = totals.counts["output_chars"]
        head = Bar(name.replace("_", " ") if name in why else name, length, why.get(name, ""))
        yield head, number(totals.counts["calls"]), number(_saved(totals)), share(totals.chars_net, output)


def _saved(totals: Totals) -> int:
    return totals.counts["tokens_saved"]


def replay_page(found: Sum, policies: Sequence[str], by: str = "") -> Iterator[str]:
    """Return the page of `replay` in parts: the figures of its table. `by`: what its rows are, as in `table`."""
    total = found.total()
    about = {
        "conversations": number(total.counts["sessions"]),
        "calls": number(total.counts["calls"]),
        "characters of tool output": number(total.counts["out"]),
        "formats": ", ".join(total.forms),
    }
    footer = f"{NO_FAULT_RATE} Nobody knows what the model would have done. docs/measuring.md says what counts."
    parts = chain(_replay_main(total, policies), _by(by, found, policies) if by else ())
    return whole_page("replay", "What readcache would have saved", about, parts, footer)


def _by(by: str, found: Sum, policies: Sequence[str]) -> Iterator[str]:
    yield f"<h2>By {by}</h2>\n"
    rows = (group_cells(group, policies) for group in groups_by(by, found.conversations))
    yield from bar_table(group_heads(by, policies), rows)


def _replay_main(total: ReplayTotals, policies: Sequence[str]) -> Iterator[str]:
    yield "<h2>What to switch on</h2>\n"
    for sentence in verdict(total, policies):
        said, _, line = sentence.partition("\n")
        yield f'<p class="verdict">{escaped(said)}</p>\n'
        yield f'<pre tabindex="0"><code>{escaped(line.strip())}</code></pre>\n' if line else ""
    if not total.counts["calls"]:
        return
    runs = [total.policies[name] for name in policies]
    yield "<h2>Policies side by side</h2>\n"
    rows = savings(total.counts, runs)
    barred, caption = _barred([cells for _, *cells in rows])
    labelled = ((label, *cells) for (label, *_), cells in zip(rows, barred, strict=True))
    yield from bar_table(("saved", *policies), labelled, caption)
    for name, run in zip(policies, runs, strict=True):
        yield from (f'<p class="note">Wrong, {escaped(name)}: {escaped(fault)}</p>\n' for fault in run.wrong)
    if total.turns:
        yield "<h2>Where your turns go</h2>\n"
        yield from _turns(total)
    if total.strategies:
        yield "<h2>Ways of keeping a conversation</h2>\n"
        yield from _strategies(total.strategies)
    yield "<h2>Saved, by tool</h2>\n"
    yield from _tools(total, policies, runs)


def _turns(total: ReplayTotals) -> Iterator[str]:
    hosts = turn_hosts(total)
    heads = (f"{host}, {what}" for host in hosts for what in ("turns", "bill"))
    yield from bar_table(("kind of turn", *heads), turn_rows(total.turns, total.turn_bills, hosts))
    yield from (f"<p>{escaped(sentence)}.</p>\n" for sentence in settings(total.turns, total.turn_bills))


def _barred(rows: Sequence[Sequence[str]], kind: str = "left") -> tuple[list[Sequence[Bar | str]], str]:
    """Return the rows of a table, with bars in each row that has only shares, and the caption. All bars have one
    scale."""
    shares = {cell: float(cell.removesuffix(" %")) for row in rows if _are_shares(row) for cell in row}
    sizes = dict(zip(shares, lengths([*shares.values()]), strict=True))
    barred: list[Sequence[Bar | str]] = [
        [Bar(cell, sizes[cell], kind=kind) for cell in row] if _are_shares(row) else row for row in rows
    ]
    return barred, bars_caption("shares", f"{max(shares.values()):.1f} %") if shares else ""


def _are_shares(cells: Sequence[str]) -> bool:
    return all(cell.endswith(" %") for cell in cells)


def _strategies(strategies: StrategyCounts) -> Iterator[str]:
    yield f"<p>{plural(strategies['none', '']['sessions'], 'conversation')}. The bill is that of all requests, beside "
    yield "that of a conversation from which nothing leaves. Each missed need costs a turn.</p>\n"
    rows = schedule_rows(strategies)
    bills, caption = _barred([[cells["bill"]] for _, cells in rows], "asked1")
    others = [[cells[head] for head in _STRATEGY_HEADS] for _, cells in rows]
    whole = [(label, *bill, *more) for (label, _), bill, more in zip(rows, bills, others, strict=True)]
    yield from bar_table(("schedule", "bill", *_STRATEGY_HEADS), whole, caption)
    yield f"<p>{escaped(BEST_NOTE)}.</p>\n"


def _tools(total: ReplayTotals, policies: Sequence[str], runs: Sequence[PolicyTotals]) -> Iterator[str]:
    tools = ranked(total.out_by_tool)[:MOST_TOOLS]
    saved = [[run.by_tool[name] for run in runs] for name, _ in tools]
    rows: list[Row] = []
    for (name, out), by_policy, length in zip(tools, saved, lengths([max(one) for one in saved]), strict=True):
        rows.append((Bar(name, length), number(total.calls_by_tool[name]), brief(out), *map(brief, by_policy)))
    most = max((max(one) for one in saved), default=0)
    caption = bars_caption("characters saved by the policy that saves the most", number(most)) if most > 0 else ""
    yield from bar_table(("tool", "calls", "characters", *policies), rows, caption)
    if (rest := len(total.out_by_tool) - MOST_TOOLS) > 0:
        yield f"<p>And {plural(rest, 'more tool')}: --json has them all.</p>\n"
