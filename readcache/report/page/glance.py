"""A session at a glance, as SVG: what each call printed, and of each file which lines were visible when. All drawings
of one reader have the same width, so that a place in one is the same moment in all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from readcache.model.events import Compacted, Rewound
from readcache.report.page.lanes import Lane, Step
from readcache.report.page.markup import attributes, brief, escaped, number, plural
from readcache.report.page.sizes import chars_left_out, chars_shown
from readcache.report.page.strips import Bar, Strip

HEIGHT = 100  # of the drawing of all calls, in units of its own
CUT_OFF = 0.98  # of the calls are drawn in proportion; one huge output would flatten all others
OPEN_FILES = 12  # that are listed at once: about a screen with what stands above them
MOST_LINKS = 200  # to calls, of one file


def glance(lane: Lane) -> Iterator[str]:
    """The drawings and their legend."""
    yield '<div class="glance">'
    yield _legend()
    yield f'<div class="strip all"><span class="name">all calls</span>{_all_calls(lane)}'
    yield f'<span class="sum">{plural(len(lane.steps), "step")}</span></div>'
    strips = lane.strips
    yield from _rows(lane, strips[:OPEN_FILES])
    if strips[OPEN_FILES:]:
        more = plural(len(strips) - OPEN_FILES, "more file")
        yield f'<details class="more"><summary>{more}</summary>'
        yield from _rows(lane, strips[OPEN_FILES:])
        yield "</details>"
    yield "</div>\n"


def _legend() -> str:
    words = (
        ("seen", "shown"),
        ("left", "left out"),
        ("current", "lines in view"),
        ("stale", "in view, but of the file as it was"),
        ("cut", "compaction"),
    )
    return (
        '<p class="legend">From left to right: the calls in order. Of each file, from top to bottom: its lines.'
        + "".join(f' <span><i class="key {kind}"></i>{text}</span>' for kind, text in words)
        + "</p>"
    )


def _all_calls(lane: Lane) -> str:
    steps = lane.steps
    sums = sorted(chars_shown(step) + chars_left_out(step) for step in steps)
    most = max(1, sums[int(CUT_OFF * (len(sums) - 1))])
    seen, left = [], []
    for step in steps:
        low = min(HEIGHT, round(HEIGHT * chars_shown(step) / most))
        high = min(HEIGHT, round(HEIGHT * (chars_shown(step) + chars_left_out(step)) / most))
        if low:
            seen.append(f"M{step.at} {HEIGHT}v-{low}h1v{low}z")
        if high > low:
            left.append(f"M{step.at} {HEIGHT - low}v-{high - low}h1v{high - low}z")
    label = f"Characters that each of the {number(len(steps))} lines below has: shown, and left out"
    paths = f'<path class="seen" d="{"".join(seen)}"/><path class="left" d="{"".join(left)}"/>'
    return _svg(len(steps), HEIGHT, label, paths + _cuts(steps, HEIGHT))


def _cuts(steps: Sequence[Step], height: int) -> str:
    places = [step.at for step in steps if isinstance(step.events[0], (Compacted, Rewound))]
    lines = "".join(f"M{at} 0V{height}" for at in places)
    return f'<path class="cut" d="{lines}"/>' if places else ""


def _svg(width: int, height: int, label: str, inside: str) -> str:
    named = attributes(viewBox=f"0 0 {width} {height}", preserveAspectRatio="none", role="img", aria_label=label)
    return f"<svg{named}>{inside}</svg>"


def _rows(lane: Lane, strips: Iterable[Strip]) -> Iterator[str]:
    steps, width = lane.steps, len(lane.steps)
    for strip in strips:
        directory, _, name = strip.key.rpartition("/")
        height = strip.lines
        said = f"{plural(height, 'line')}, {plural(len(strip.calls), 'call')}"
        label = f"{strip.key}: {said}; lines in view over time"
        inside = _bars("stale", strip.stale.bars) + _bars("current", strip.current.bars)
        yield f'<details class="file"><summary class="strip"><span class="name"{attributes(title=strip.key)}>'
        yield f"<b>{escaped(name)}</b> <small>{escaped(directory)}</small></span>"
        yield _svg(width, height, label, inside + _cuts(steps, height))
        left = f", {brief(strip.left_out)} left out" if strip.left_out else ""
        yield f'<span class="sum">{brief(height)} lines{left}</span></summary>'
        yield f'<div class="body"><p><code>{escaped(strip.key)}</code></p>'
        yield f"<p>Shown or left out in {_links(steps, strip.calls)}.</p>"
        if strip.writes:
            yield f"<p>What was in view became stale at {_links(steps, strip.writes)}.</p>"
        yield "</div></details>"


def _bars(kind: str, bars: Iterable[Bar]) -> str:
    path = "".join(
        f"M{bar.since} {bar.first - 1}h{bar.until - bar.since}v{bar.last - bar.first + 1}h-{bar.until - bar.since}z"
        for bar in bars
    )
    return f'<path class="{kind}" d="{path}"/>' if path else ""


def _links(steps: Sequence[Step], places: Sequence[int]) -> str:
    links = " ".join(link(steps[at]) for at in places[:MOST_LINKS])
    more = len(places) - MOST_LINKS
    return links + (f" and {plural(more, 'more step')}" if more > 0 else "")


def link(step: Step) -> str:
    """To a line of the time line, by its number."""
    return f'<a href="#{step.name}">#{step.at + 1}</a>'
