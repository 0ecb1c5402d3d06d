"""A session as one HTML page that needs no network: `session_page` makes it from records only."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from readcache.core.model.events import Compacted, Delivered, Event, Failed, Origin, Record
from readcache.core.model.reply import Reason
from readcache.core.model.unconfirmed import as_counted
from readcache.report.answered import ReaderFold
from readcache.report.net import fault_rates, net_paragraph
from readcache.report.page.calls import time_line
from readcache.report.page.html import Bar, Row, bar_table, escaped, number, plural, whole_page
from readcache.report.page.overview import overview
from readcache.report.page.timelines import Timeline, timelines_of
from readcache.report.totals import Totals

_FILTERS = (
    ("", "all"),
    ("left", "left out"),
    ("again", "asks again"),
    ("bounced", "asked for again"),
    ("wrote", "writes"),
    ("host", "by the harness"),
    ("failed", "failures"),
)
_KEYS = (
    (("j", "k"), "next and previous step"),
    (("n", "p"), "next and previous step that left something out"),
    (("Enter",), "unfold or fold"),
    (("Esc",), "fold, and back to the step"),
    (("/",), "filter"),
    (("+", "-", "0"), "zoom in, out, all"),
)


def session_page(
    records: Sequence[Record], title: str, about: Mapping[str, str], agent_id: str = "", *, is_live: bool = True
) -> Iterator[str]:
    """Yield the page in parts.

    `records`: the records of one session, of every reader. `about`: facts for the head of the page. `agent_id`: the
    reader that the page shows; "" for all. `is_live`: False for a recording, whose agent saw no markers. Raise
    LookupError if nothing was recorded of this reader.
    """
    records = as_counted(records)
    timelines = timelines_of(records, agent_id)
    if not timelines:
        raise LookupError(f"nothing was recorded of agent {agent_id}" if agent_id else "nothing was recorded")
    times = [step.record.at for timeline in timelines for step in timeline.steps if step.record.at > 0]
    facts = dict(about)
    if times:
        facts["began"] = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(min(times)))
        facts["lasted"] = f"{(max(times) - min(times)) / 60:,.0f} min"
    skip = '<a class="skip" href="#calls-1">To the calls</a>\n'
    main = _main(records, title, timelines, min(times, default=0.0), is_live=is_live)
    links = _links(timelines)
    yield from whole_page("report", title, facts, main, _hint(), links=links, skip=skip, script="page.js")


def _links(timelines: Sequence[Timeline]) -> str:
    """Return links to the readers; "" if there is only one."""
    if len(timelines) < 2:
        return ""
    links = "".join(
        f'<li><a href="#reader-{nth}">{escaped(timeline.agent_id)}</a> {plural(len(timeline.steps), "step")}</li>'
        for nth, timeline in enumerate(timelines, 1)
    )
    return f'<nav aria-label="Readers"><ul>{links}</ul></nav>'


def _main(
    records: Sequence[Record], title: str, timelines: Sequence[Timeline], began: float, *, is_live: bool
) -> Iterator[str]:
    totals = Totals()
    for timeline in timelines:
        for call in ReaderFold(title, timeline.agent_id, None).take(records):
            totals.add(call)
    yield '<section aria-labelledby="totals"><h2 id="totals">Totals</h2>\n'
    yield f'<p class="verdict">{net_paragraph(totals)}</p>\n'
    markers = sum(timeline.markers for timeline in timelines)
    steps = [step for timeline in timelines for step in timeline.steps if step.record.agent_id == timeline.agent_id]
    rates = fault_rates(totals) if is_live else dict.fromkeys(("markers", "calls"), "not known: recorded")
    yield from _totals(totals, markers, rates, [event for step in steps for event in step.events])
    yield "</section>\n"
    for nth, timeline in enumerate(timelines, 1):
        yield from _reader(timeline, nth, began, single=len(timelines) == 1)


def _totals(totals: Totals, markers: int, rates: Mapping[str, str], events: Sequence[Event]) -> Iterator[str]:
    """Yield the totals, with the same figures as `readcache gain`, and the reasons."""
    counts = totals.counts
    output = counts["output_chars"]
    share = f" · {100 * totals.chars_net / output:.1f}&nbsp;%" if output else ""
    restored = sum(isinstance(event, Delivered) and event.origin is Origin.RESTORED for event in events)
    rows = (
        ("calls judged", number(counts["calls"])),
        ("calls not judged", number(counts["missed"])),
        ("characters printed", number(output)),
        ("characters shown", number(counts["shown_chars"])),
        ("characters omitted, not asked for again", number(totals.chars_net) + share),
        ("tokens omitted, not asked for again, about", number(counts["tokens_saved"])),
        ("markers", number(markers)),
        ("re-reads of visible lines", number(totals.sums["rereads_in_view"])),
        ("of these, shortened", number(totals.sums["rereads_in_view_answered"])),
        ("shortened, then asked for again", number(counts["bounces"])),
        ("fault rate, per 1,000 markers", rates["markers"]),
        ("fault rate, per 1,000 calls", rates["calls"]),
        ("compactions", number(sum(isinstance(event, Compacted) for event in events))),
        ("sections restored", number(restored)),
        ("characters removed later", number(counts["removed_chars"])),
        ("re-read after compaction", number(counts["reread_calls"])),
        ("answered by the restored section", number(counts["reread_answered"])),
        ("prompt caches broken by a marker", number(counts["cache_writes"])),
        ("failures of readcache", number(sum(isinstance(event, Failed) for event in events))),
    )
    yield '<dl class="totals">'
    for name, value in rows:
        yield f"<div><dt>{name}</dt><dd>{value}</dd></div>"
    yield "</dl>\n"
    reasons = sorted((r for r in Reason if counts[r.value]), key=lambda reason: -counts[reason.value])
    if reasons:
        why: list[Row] = [
            (Bar(reason.value.replace("_", " "), note=reason.why), number(counts[reason.value])) for reason in reasons
        ]
        yield '<details class="reasons"><summary>Why, for each call</summary>'
        yield from bar_table(("reason", "calls"), why)
        yield "</details>\n"


def _reader(timeline: Timeline, nth: int, began: float, *, single: bool) -> Iterator[str]:
    name, hidden = escaped(timeline.agent_id), ' class="single"' if single else ""
    kind = "reader" if began else "reader untimed"
    yield f'<section class="{kind}" aria-labelledby="reader-{nth}">'
    yield f'<h2 id="reader-{nth}"{hidden}>Reader {name}</h2>\n'
    yield "<h3>The context over time</h3>\n"
    yield from overview(timeline)
    yield f'<h3 id="calls-{nth}" tabindex="-1">Calls</h3>\n'
    yield '<p class="legend">On the right of each: the characters shown, and those omitted, less the markers.</p>'
    yield from _filter(nth)
    yield from time_line(timeline, began)
    yield "</section>\n"


def _filter(nth: int) -> Iterator[str]:
    """Yield the filter. It is hidden until the script that operates it has started."""
    yield f'<div class="filter" role="group" aria-label="Which calls" hidden><label for="find-{nth}">Filter</label> '
    yield f'<input id="find-{nth}" type="search" placeholder="a word of a command or text" autocomplete="off">'
    for kind, text in _FILTERS:
        pressed = "false" if kind else "true"
        yield f'<button type="button" data-show="{kind}" aria-pressed="{pressed}">{text}</button>'
    yield '<output aria-live="polite"></output></div>\n'


def _hint() -> str:
    keys = "; ".join(" ".join(f"<kbd>{key}</kbd>" for key in keys) + f" {what}" for keys, what in _KEYS)
    return f"{keys}. This page holds what the agent saw: share it as you would share that."
