"""The overview of a session in two drawings: the size of the conversation, and the requests for each file over time.

Both drawings have a column for each step. So two marks in one column belong to the same moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from readcache.core.model.events import Compacted, Rewound
from readcache.report.page.context import FileRow
from readcache.report.page.html import (
    HEIGHT,
    attributes,
    brief,
    drawn_path,
    escaped,
    number,
    plot,
    plural,
    steps_path,
    svg,
    ticks,
)
from readcache.report.page.timelines import Step, Timeline

MOST = 34  # characters of a name; it has more if it needs them to differ from all others
LEAST_HEAD = 6  # characters before the ellipsis
SHARED = 0.9  # share of the files: a directory that contains more is omitted from their names
ROW = 10  # height of a file's row, in units of its own
OPEN_FILES = 16  # files that are visible before the list is unfolded
MOST_LINKS = 200  # links to calls, for one file
MOST_TIMES = 4  # shades: lines that were requested more often have the last one
_ZOOM = (("in", "Zoom in", "+"), ("out", "Zoom out", "−"), ("earlier", "Earlier", "‹"), ("later", "Later", "›"))


def home_of(keys: Sequence[str]) -> str:
    """Return the directory that contains nearly all of these files, with a slash at the end; "" if there is none."""
    home, keys = "", [key for key in keys if key.startswith("/")]
    while True:
        inside = [key[len(home) :] for key in keys if key.startswith(home)]
        below = Counter(rest.partition("/")[0] for rest in inside if "/" in rest)
        name, count = max(below.items(), key=lambda item: item[1], default=("", 0))
        if count <= SHARED * len(keys) or len(keys) < 2:
            return home if home != "/" else ""
        home += name + "/"


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """Return a short name for each key. No two names are the same."""
    home = home_of(keys)
    names = {key: key.removeprefix(home) for key in keys}
    if len({*names.values()}) < len(names):
        names = {key: key for key in keys}
    short, most = {key: elide(name, MOST) for key, name in names.items()}, MOST
    while alike := {name for name, count in Counter(short.values()).items() if count > 1}:
        most += 1
        short |= {key: elide(names[key], most) for key, name in short.items() if name in alike}
    return short


def elide(name: str, most: int) -> str:
    """Return the name in at most `most` characters: its start and its end. The end contains the file's own name if
    there is room."""
    if len(name) <= most:
        return name
    file_name = len(name.rpartition("/")[2])
    head = min(max(LEAST_HEAD, most - 2 - file_name), most // 2)
    return f"{name[:head]}…{name[head + 1 - most :]}"


def overview(timeline: Timeline) -> Iterator[str]:
    """Yield both drawings, with the buttons that zoom them."""
    yield '<div class="glance"><div class="tools" role="group" aria-label="Zoom" hidden>'
    for kind, label, sign in _ZOOM:
        yield f'<button type="button" data-zoom="{kind}" aria-label="{label}" title="{label}">{sign}</button>'
    yield '<button type="button" data-zoom="all">all</button>'
    yield '<p class="readout">Drag to zoom in. Click to go to a call.</p></div>'
    yield from _context(timeline.steps, timeline.count.of_chars)
    rows, names = timeline.files, short_names([row.key for row in timeline.files])
    if rows:
        yield from _legend(rows)
        yield from _rows(timeline, rows[:OPEN_FILES], names)
    if rows[OPEN_FILES:]:
        more = plural(len(rows) - OPEN_FILES, "more file")
        yield f'<details class="more"><summary>{more}</summary>'
        yield from _rows(timeline, rows[OPEN_FILES:], names)
        yield "</details>"
    yield "</div>\n"


def _context(steps: Sequence[Step], tokens: Callable[[int], int]) -> Iterator[str]:
    """Yield the drawing of the tokens after each step. Its areas cover one another, so the highest is drawn first.
    `tokens`: returns the number of tokens for a number of characters."""
    sizes = [step.sizes for step in steps]
    most = max(one.in_view + one.spared for one in sizes)
    scale = ticks(tokens(most))
    spared = [tokens(one.in_view + one.spared) if one.spared else 0 for one in sizes]
    seen, back = [tokens(one.in_view) for one in sizes], [tokens(one.back) for one in sizes]
    falls = [
        (after.at, tokens(before.sizes.in_view - after.sizes.in_view))
        for before, after in pairwise(steps)
        if _is_removal(after)
    ]
    figures = [("current", f"in view: at most {brief(max(seen))} tokens, {brief(seen[-1])} in the end")]
    if any(back):
        figures.append(("again", f"of these, restored or read again after they had left: at most {brief(max(back))}"))
    if any(spared):
        most_spared = tokens(max(one.spared for one in sizes))
        figures.append(("left", f"left out, so not carried: at most {brief(most_spared)}"))
    if falls:
        taken = brief(sum(fall for _, fall in falls))
        figures.append(("cut", f"{plural(len(falls), 'compaction')} took away {taken} tokens"))
    drops = (before.sizes.in_view - after.sizes.in_view for before, after in pairwise(steps) if not _is_removal(after))
    if cleared := tokens(sum(drop for drop in drops if drop > 0)):
        figures.append(("none", f"cleared, cut or shortened by the harness: {brief(cleared)}"))
    yield f'<p class="legend">{"".join(_key(*one) for one in figures)}</p>'
    areas = "".join(
        drawn_path(kind, steps_path(values, scale))
        for kind, values in (("left", spared), ("current", seen), ("again", back))
        if any(values)
    )
    said = "; ".join(text for _, text in figures)
    label = f"Tokens of tool results in view after each of {number(len(steps))} steps: {said}"
    drawn = areas + _removal_marks(steps, HEIGHT)
    x_labels = [(n - 0.5, number(n)) for n in (1, *ticks(len(steps), 8)[1:])]
    marks = [(at, brief(-fall)) for at, fall in falls if fall]
    yield from plot(len(steps), scale, label, drawn, marks, ("tokens in view", "step"), x_labels)


def _is_removal(step: Step) -> bool:
    return isinstance(step.events[0], (Compacted, Rewound))


def _removal_marks(steps: Sequence[Step], height: int) -> str:
    return drawn_path("cut", "".join(f"M{step.at} 0V{height}" for step in steps if _is_removal(step)))


def _key(kind: str, text: str) -> str:
    return f' <span><i class="key {kind}"></i>{text}</span>'


def _legend(rows: Sequence[FileRow]) -> Iterator[str]:
    home = home_of([row.key for row in rows])
    below = f" Names are below <code>{escaped(home)}</code>." if home else ""
    yield '<h4>Which files were asked for, and how often</h4><p class="legend"><span>Lines asked for:</span>'
    for times, text in ((1, "for the first time"), (2, "again"), (3, "a third time"), (4, "more often")):
        yield _key(f"asked{times}", text)
    yield f"{_key('left', 'mostly left out')}{_key('wrote', 'the file was written')}<span>{below}</span></p>"


def _rows(timeline: Timeline, rows: Sequence[FileRow], names: dict[str, str]) -> Iterator[str]:
    steps = timeline.steps
    marks = _removal_marks(steps, ROW)
    for row in rows:
        asked = f"{plural(len(row.cells), 'call')}, {brief(row.again)} lines again"
        directory, slash, name = names[row.key].rpartition("/")
        at = " ".join(str(cell.at) for cell in row.cells)
        yield f'<details class="file" data-at="{at}"><summary class="strip">'
        yield f"<span{attributes(class_='name', title=row.key)}>"
        yield f"<small>{escaped(directory + slash)}</small>{escaped(name)}</span>"
        yield svg(len(steps), ROW, f"{row.key}: {asked}, {plural(row.left_out, 'line')} left out", marks + _cells(row))
        yield f'<span class="sum">{asked}</span></summary><div class="body"><p><code>{escaped(row.key)}</code></p>'
        yield f"<p>Asked for in {_links(steps, [cell.at for cell in row.cells])}.</p>"
        if row.writes:
            yield f"<p>Written, or found to have changed, in {_links(steps, row.writes)}.</p>"
        yield f"<p>{plural(row.again, 'line')} had been asked for before; {plural(row.left_out, 'line')} left out.</p>"
        yield "</div></details>"


def _cells(row: FileRow) -> str:
    by_kind = {kind: "" for kind in (*(f"asked{times}" for times in range(1, MOST_TIMES + 1)), "left")}
    for cell in row.cells:
        kind = "left" if cell.is_left_out else f"asked{min(cell.times, MOST_TIMES)}"
        by_kind[kind] += f"M{cell.at} 0h1v{ROW - 2}h-1z"
    writes = "".join(f"M{at} {ROW - 2}h1v2h-1z" for at in row.writes)
    return "".join(drawn_path(kind, drawn) for kind, drawn in by_kind.items()) + drawn_path("wrote", writes)


def _links(steps: Sequence[Step], indexes: Sequence[int]) -> str:
    links = " ".join(link(steps[at]) for at in dict.fromkeys(indexes[:MOST_LINKS]))
    more = len(indexes) - MOST_LINKS
    return links + (f" and {plural(more, 'more step')}" if more > 0 else "")


def link(step: Step) -> str:
    """Return a link to a step of the timeline, with its number."""
    return f'<a href="#{step.name}">#{step.at + 1}</a>'
