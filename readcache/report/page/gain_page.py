"""What was saved, as a page: by day, by session, and by host, tool and reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta

from readcache.model.reply import Reason
from readcache.report.gain.totals import Gain, Totals, coverage_of
from readcache.report.page.chart import HEIGHT, drawn_path, height_of, plot, ticks
from readcache.report.page.frame import whole_page
from readcache.report.page.markup import escaped, number, plural
from readcache.report.page.tables import Bar, bar_table, lengths
from readcache.report.page.verdict import DOLLARS, verdict_of

MOST_DAYS = 366  # the last ones are drawn
MOST_LABELS = 6  # below the drawing
OPEN_ROWS = 20  # that are listed at once
_HEADS = ("calls", "saved, tokens", "of output")
_TITLES = {"session": "Each session", "host": "By host", "tool": "By tool", "reason": "By reason"}


def gain_page(gain: Gain, price: float | None = None) -> Iterator[str]:
    """In parts. `price`: dollars for a million tokens of input that no cache holds; None: an example."""
    about = {"sessions": number(len(gain.sessions)), "calls": number(gain.total.counts["calls"])}
    if gain.first:
        about["since"] = gain.first.isoformat()
    footer = (
        "Tokens are estimates: by each session's Policy.count_tokens, else a quarter of the characters. Saved: net of "
        "markers, and of what was asked for again at once. `readcache report SESSION` shows a session call by call."
    )
    return whole_page("gain", "What readcache saved", about, _main(gain, price), footer)


def _main(gain: Gain, price: float | None) -> Iterator[str]:
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
