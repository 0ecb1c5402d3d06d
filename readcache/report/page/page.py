"""A session as one HTML page that needs no network: `write_page` makes it from records alone."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files

from readcache.model.events import Compacted, Delivered, Event, Failed, Origin, Record
from readcache.model.reply import Reason
from readcache.report.gain.answered import ReaderFold
from readcache.report.gain.totals import Totals
from readcache.report.page.calls import time_line
from readcache.report.page.glance import glance
from readcache.report.page.lanes import Lane, lanes_of
from readcache.report.page.markup import escaped, number, plural

# A page begins so: by this a file is known to be one that may be written over.
BEGINNING = "<!doctype html>\n<!-- made by `readcache report` -->\n"
DOLLARS = 3  # for a million tokens of input that no cache holds, as an example: the log names no model
_FILTERS = (
    ("", "all"),
    ("left", "left out"),
    ("again", "asked again"),
    ("bounced", "bounced"),
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


def write_page(
    records: Sequence[Record],
    title: str,
    about: Mapping[str, str],
    write: Callable[[str], object],
    agent_id: str = "",
) -> None:
    """The page, in parts, to `write`. `records`: of one session, every reader's. `about`: facts for its head.
    `agent_id`: the reader that it is about; empty for all. LookupError where there is no such reader."""
    lanes = lanes_of(records, agent_id)
    if not lanes:
        raise LookupError(f"nothing was recorded of agent {agent_id}" if agent_id else "nothing was recorded")
    style, script = _data("page.css"), _data("page.js")
    write(BEGINNING)
    for part in _head(title, style, script):
        write(part)
    times = [step.record.at for lane in lanes for step in lane.steps if step.record.at > 0]
    totals = Totals()
    for lane in lanes:
        for call in ReaderFold(title, lane.agent_id, None).take(records):
            totals.add(call)
    for part in _top(title, about, times, lanes, totals):
        write(part)
    began = min(times, default=0.0)
    for place, lane in enumerate(lanes, 1):
        for part in _reader(lane, place, began, single=len(lanes) == 1):
            write(part)
    write(f"</main>\n<footer><p>{_hint()}</p></footer>\n<script>{script}</script>\n</body>\n</html>\n")


def _data(name: str) -> str:
    return files("readcache.report.page").joinpath(name).read_text("utf-8")


def _head(title: str, style: str, script: str) -> Iterator[str]:
    """The page may load nothing and run only our own script and style, whatever text it shows."""
    rules = (
        f"default-src 'none'; style-src '{_hash(style)}'; style-src-attr 'unsafe-inline'; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    yield '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{rules}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
    yield f"<title>{escaped(title)} · readcache</title>\n<style>{style}</style>\n</head>\n<body>\n"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _top(
    title: str, about: Mapping[str, str], times: Sequence[float], lanes: Sequence[Lane], totals: Totals
) -> Iterator[str]:
    yield '<a class="skip" href="#calls-1">To the calls</a>\n'
    yield f'<header><p class="by">readcache report</p><h1>{escaped(title)}</h1>\n<p class="about">'
    facts = dict(about)
    if times:
        facts["began"] = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(min(times)))
        facts["lasted"] = f"{(max(times) - min(times)) / 60:,.0f} min"
    yield " ".join(f"<span>{escaped(name)} <b>{escaped(value)}</b></span>" for name, value in facts.items())
    yield "</p>\n"
    if len(lanes) > 1:
        yield '<nav aria-label="Readers"><ul>'
        yield "".join(
            f'<li><a href="#reader-{place}">{escaped(lane.agent_id)}</a> {plural(len(lane.steps), "step")}</li>'
            for place, lane in enumerate(lanes, 1)
        )
        yield "</ul></nav>"
    yield '</header>\n<main>\n<section aria-labelledby="totals"><h2 id="totals">Totals</h2>\n'
    yield f'<p class="verdict">{_verdict(totals)}</p>\n'
    markers = sum(lane.markers for lane in lanes)
    steps = [step for lane in lanes for step in lane.steps if step.record.agent_id == lane.agent_id]
    yield from _totals(totals, markers, [event for step in steps for event in step.events])
    yield "</section>\n"


def _verdict(totals: Totals) -> str:
    """The verdict in money and turns. Each time the reader asked again for omitted lines cost a turn."""
    counts = totals.counts
    if would := counts["tokens_saved_if_on"]:
        return f"readcache only advised: it would have left out about {number(would)} tokens."
    if not totals.cuts:
        return "Nothing was left out."
    share = f"{100 * totals.chars_net / counts['output_chars']:.1f}&nbsp;% of what tools printed"
    turns = f"{plural(counts['bounces'], 'turn')} spent on asking again"
    worth = f"{totals.priced_net:+,.0f} uncached input tokens"
    return f"{share} was left out, net of markers. After {turns}, that is worth {worth}: {_money(totals)}."


def _money(totals: Totals) -> str:
    return (
        f"{'-' if totals.priced_net < 0 else ''}${abs(totals.priced_net) * DOLLARS / 1e6:,.3f} at ${DOLLARS} a million"
    )


def _totals(totals: Totals, markers: int, events: Sequence[Event]) -> Iterator[str]:
    """The same figures as `readcache gain` has."""
    counts = totals.counts
    output = counts["output_chars"]
    share = f" · {100 * totals.chars_net / output:.1f}&nbsp;%" if output else ""
    restored = sum(isinstance(event, Delivered) and event.origin is Origin.RESTORED for event in events)
    rows = (
        ("calls answered", number(counts["calls"])),
        ("characters printed", number(output)),
        ("characters shown", number(counts["shown_chars"])),
        ("left out, net of markers and bounces", number(totals.chars_net) + share),
        ("tokens saved, net, about", number(counts["tokens_saved"])),
        ("markers", number(markers)),
        ("bounces: asked for again", number(counts["bounces"])),
        ("compactions", number(sum(isinstance(event, Compacted) for event in events))),
        ("sections restored", number(restored)),
        ("characters that left later", number(counts["removed_chars"])),
        ("calls that read again what had left", number(counts["reread_calls"])),
        ("answered by a restored section", number(counts["reread_answered"])),
        ("prompt caches that a marker broke", number(counts["cache_writes"])),
        ("failures of readcache", number(sum(isinstance(event, Failed) for event in events))),
    )
    yield '<dl class="totals">'
    for name, value in rows:
        yield f"<div><dt>{name}</dt><dd>{value}</dd></div>"
    yield "</dl>\n"
    reasons = sorted((r for r in Reason if counts[r.value]), key=lambda reason: -counts[reason.value])
    if reasons:
        yield '<details class="reasons"><summary>Why, for each call</summary><table><thead><tr>'
        yield "".join(f'<th scope="col">{head}</th>' for head in ("calls", "reason", "what it means"))
        yield "</tr></thead><tbody>"
        for reason in reasons:
            yield f'<tr><td>{number(counts[reason.value])}</td><th scope="row">{reason.value.replace("_", " ")}</th>'
            yield f"<td>{escaped(reason.why)}</td></tr>"
        yield "</tbody></table></details>\n"


def _reader(lane: Lane, place: int, began: float, *, single: bool) -> Iterator[str]:
    name, hidden = escaped(lane.agent_id), ' class="single"' if single else ""
    kind = "reader" if began else "reader untimed"
    yield f'<section class="{kind}" aria-labelledby="reader-{place}">'
    yield f'<h2 id="reader-{place}"{hidden}>Reader {name}</h2>\n'
    yield "<h3>The context over time</h3>\n"
    yield from glance(lane)
    yield f'<h3 id="calls-{place}" tabindex="-1">Calls</h3>\n'
    yield '<p class="legend">On the right of each: the characters shown, and those left out, net of markers.</p>'
    yield from _filter(place)
    yield from time_line(lane, began)
    yield "</section>\n"


def _filter(place: int) -> Iterator[str]:
    """Hidden until the script is there that makes it work."""
    yield f'<div class="filter" role="group" aria-label="Which calls" hidden><label for="find-{place}">Filter</label> '
    yield f'<input id="find-{place}" type="search" placeholder="a word of a command or text" autocomplete="off">'
    for kind, text in _FILTERS:
        pressed = "false" if kind else "true"
        yield f'<button type="button" data-show="{kind}" aria-pressed="{pressed}">{text}</button>'
    yield '<output aria-live="polite"></output></div>\n'


def _hint() -> str:
    keys = "; ".join(" ".join(f"<kbd>{key}</kbd>" for key in keys) + f" {what}" for keys, what in _KEYS)
    return f"{keys}. This page holds what the agent saw: share it as you would share that."
