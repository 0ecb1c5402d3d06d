"""Drawings with scales, as SVG, for every page: one unit of width is a call or a day, labels are HTML beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from readcache.report.page.markup import attributes, brief

HEIGHT = 200  # of a plot, in units of its own
PARTS = 4  # of a scale, about
APART = 0.06  # of the width: labels that are nearer to each other would touch


def ticks(most: int, parts: int = PARTS) -> range:
    """0, and the round numbers up to the first that is at least `most`."""
    step = 1
    while step * parts < most:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return range(0, step * max(1, -(-most // step)) + 1, step)


def height_of(value: float, scale: range) -> int:
    """Of a value on a scale, from the top of the plot."""
    return HEIGHT - round(HEIGHT * value / scale[-1])


def steps_path(values: Sequence[float], scale: range) -> str:
    """An area under one value for each unit of width."""
    parts, before = [f"M0 {HEIGHT}"], HEIGHT
    for at, value in enumerate(values):
        if (height := height_of(value, scale)) != before:
            parts.append(f"H{at}V{height}")
            before = height
    return f"{''.join(parts)}H{len(values)}V{HEIGHT}z"


def svg(width: int, height: int, label: str, inside: str) -> str:
    """A drawing that is stretched to its place."""
    named = attributes(viewBox=f"0 0 {width} {height}", preserveAspectRatio="none", role="img", aria_label=label)
    return f"<svg{named}>{inside}</svg>"


def drawn_path(kind: str, drawn: str) -> str:
    """`kind`: its class. Nothing where nothing is drawn."""
    return f'<path class="{kind}" d="{drawn}"/>' if drawn else ""


def plot(
    width: int,
    scale: range,
    label: str,
    inside: str,
    marks: Iterable[tuple[float, str]],
    units: tuple[str, str],
    below: Iterable[tuple[float, str]],
) -> Iterator[str]:
    """A drawing with its scales. `units`: of the upright and of the level scale. `marks` at its upper edge and `below`
    it: labels, each at a place in units of width."""
    grid = "".join(f"M0 {height_of(value, scale)}H{width}" for value in scale[1:])
    labels = ((n, brief(n).replace(".0", "")) for n in scale)
    upright = "".join(f'<span style="bottom:{100 * n / scale[-1]:.2f}%">{text}</span>' for n, text in labels)
    yield f'<div class="strip plot"><div class="name y"><b>{units[0]}</b><div class="scale">{upright}</div></div>'
    yield f'<div class="area">{svg(width, HEIGHT, label, drawn_path("grid", grid) + inside)}'
    yield f'<div class="scale marks">{_placed(marks, width)}</div></div></div>'
    yield f'<div class="strip x"><span class="name">{units[1]}</span>'
    yield f'<div class="scale">{_placed(below, width)}</div></div>'


def _placed(labels: Iterable[tuple[float, str]], width: int) -> str:
    """All of them; those without room are hidden until there is some."""
    parts, last = [], -1.0
    for at, text in labels:
        share = at / width
        is_hidden = share >= 1 or share - last < APART
        last = last if is_hidden else share
        named = attributes(data_at=f"{at:g}", style=f"left:{100 * share:.2f}%", hidden=is_hidden)
        parts.append(f"<span{named}>{text}</span>")
    return "".join(parts)
