"""Make the HTML of every page: escaped text, the frame around a page, tables with bars, drawings with scales.

Text that an agent saw is hostile: it may contain markup, and characters that hide or reverse text. So all text is
escaped. A page loads nothing, and runs only the script of readcache.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

_PLAIN = "\n\t\u200d"  # the last one joins the parts of an emoji and is invisible by itself
# Each page starts with this text. A file that starts with it may be overwritten.
BEGINNING = "<!doctype html>\n<!-- made by `readcache "
HEIGHT = 200  # of a plot, in units of its own
PARTS = 4  # of a scale, approximately
APART = 0.06  # share of the width: labels closer than this would touch


def escaped(text: str) -> str:
    """Return the text for use between tags or in quoted attributes. Every character is visible, and none is markup. A
    character without a shape becomes its number: `\\x1b`, `\\u202e`."""
    return _shown(html.escape(text), "", "")


def marked_up(text: str) -> str:
    """Return the text escaped, for use only between tags. The number of a character without a shape is bold, to
    distinguish it from a text that looks the same."""
    return _shown(html.escape(text, quote=False), "<b>", "</b>")


def _shown(text: str, begin: str, end: str) -> str:
    odd = [c for c in set(text) if not c.isprintable() and c not in _PLAIN]
    return text.translate({ord(c): f"{begin}{c.encode('unicode_escape').decode('ascii')}{end}" for c in odd})


def attributes(**values: str | int | bool | None) -> str:
    """Return ` name="value"` for each attribute; only ` name` for True, and nothing for None and False. An underscore
    in a name becomes a hyphen. An underscore at its end is dropped."""
    parts = []
    for name, value in values.items():
        if value is None or value is False:
            continue
        name = name.rstrip("_").replace("_", "-")
        parts.append(f" {name}" if value is True else f' {name}="{escaped(str(value))}"')
    return "".join(parts)


def number(value: float) -> str:
    """Return the number as `12,345`, with a minus sign that is as wide as a digit."""
    return f"{value:,}".replace("-", "−")


def brief(value: int) -> str:
    """Return the number as `12k`, in about four characters, for columns."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if abs(value) >= size:
            short = value / size
            return (f"{short:.1f}" if abs(short) < 9.95 else f"{short:.0f}").replace("-", "−") + unit
    return number(value)


def plural(value: int, one: str) -> str:
    """Return the number and the noun: `1 call`, `2 calls`."""
    return f"{number(value)} {one if value == 1 else one + 's'}"


def whole_page(
    command: str,
    title: str,
    about: Mapping[str, str],
    main: Iterable[str],
    footer: str,
    *,
    links: str = "",
    skip: str = "",
    script: str = "",
) -> Iterator[str]:
    """Yield the page in parts.

    `command`: the command of readcache that makes the page. `about`: facts for its head. `main`, `footer`, `links` (to
    its parts) and `skip` (a link past its head) are HTML. `script`: the file name of its script; "" for none.
    """
    style, code = _data("page.css"), _data(script) if script else ""
    rules = (
        f"default-src 'none'; style-src '{_hash(style)}'; style-src-attr 'unsafe-inline'; "
        f"script-src '{_hash(code) if code else 'none'}'; base-uri 'none'; form-action 'none'"
    )
    yield f"{BEGINNING}{command}` -->\n"
    yield '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{rules}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
    yield f"<title>{escaped(title)} · readcache</title>\n<style>{style}</style>\n</head>\n<body>\n{skip}"
    yield f'<header><p class="by">readcache {command}</p><h1>{escaped(title)}</h1>\n<p class="about">'
    yield " ".join(f"<span>{escaped(name)} <b>{escaped(value)}</b></span>" for name, value in about.items())
    yield f"</p>\n{links}</header>\n<main>\n"
    yield from main
    yield f"</main>\n<footer><p>{footer}</p></footer>\n"
    yield f"<script>{code}</script>\n" if code else ""
    yield "</body>\n</html>\n"


def _data(name: str) -> str:
    return files("readcache.report.page").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


class Bar(NamedTuple):
    """A cell: text with a note, and a bar of `length` (a share of the longest) below it. `kind`: its colour."""

    text: str
    length: float | None = None
    note: str = ""
    kind: str = "left"


Row = Sequence[Bar | str]


def bar_table(heads: Sequence[str], rows: Iterable[Row], caption: str = "") -> Iterator[str]:
    """Yield a table. The first cell of each row is the heading of the row. `caption`: the meaning and the scale of its
    bars."""
    yield f"<table>{f'<caption>{escaped(caption)}</caption>' if caption else ''}<thead><tr>"
    yield "".join(f'<th scope="col">{escaped(head)}</th>' for head in heads)
    yield "</tr></thead><tbody>"
    for first, *rest in rows:
        yield f'<tr><th scope="row">{_cell(first)}</th>{"".join(f"<td>{_cell(cell)}</td>" for cell in rest)}</tr>'
    yield "</tbody></table>\n"


def lengths(values: Sequence[float]) -> list[float]:
    """Return the lengths of the bars for these values, as shares of the longest bar. Values below 0 get 0."""
    most = max(values, default=0)
    return [max(0.0, value) / most if most > 0 else 0.0 for value in values]


def _cell(cell: Bar | str) -> str:
    if isinstance(cell, str):
        return escaped(cell)
    note = f" <small>{escaped(cell.note)}</small>" if cell.note else ""
    bar = f'<i class="bar {cell.kind}" style="--length:{cell.length:.3f}"></i>' if cell.length is not None else ""
    return escaped(cell.text) + note + bar


def ticks(most: int, parts: int = PARTS) -> range:
    """Return 0 and the round numbers after it, up to the first one that is at least `most`."""
    step = 1
    while step * parts < most:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return range(0, step * max(1, -(-most // step)) + 1, step)


def height_of(value: float, scale: range) -> int:
    """Return the distance of a value on a scale from the top of the plot."""
    return HEIGHT - round(HEIGHT * value / scale[-1])


def steps_path(values: Sequence[float], scale: range) -> str:
    """Return the path of an area under the values. Each value is one unit wide."""
    parts, before = [f"M0 {HEIGHT}"], HEIGHT
    for at, value in enumerate(values):
        if (height := height_of(value, scale)) != before:
            parts.append(f"H{at}V{height}")
            before = height
    return f"{''.join(parts)}H{len(values)}V{HEIGHT}z"


def svg(width: int, height: int, label: str, inside: str) -> str:
    """Return a drawing that stretches to fill its element."""
    named = attributes(viewBox=f"0 0 {width} {height}", preserveAspectRatio="none", role="img", aria_label=label)
    return f"<svg{named}>{inside}</svg>"


def drawn_path(kind: str, drawn: str) -> str:
    """Return a path of the class `kind`; "" if nothing is drawn."""
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
    """Yield a drawing with its scales. `units`: the units of the vertical and of the horizontal scale. `marks` and
    `below`: labels at the upper edge and below the drawing, each at a position in units of width."""
    grid = "".join(f"M0 {height_of(value, scale)}H{width}" for value in scale[1:])
    labels = ((n, brief(n).replace(".0", "")) for n in scale)
    upright = "".join(f'<span style="bottom:{100 * n / scale[-1]:.2f}%">{text}</span>' for n, text in labels)
    yield f'<div class="strip plot"><div class="name y"><b>{units[0]}</b><div class="scale">{upright}</div></div>'
    yield f'<div class="area">{svg(width, HEIGHT, label, drawn_path("grid", grid) + inside)}'
    yield f'<div class="scale marks">{_positioned(marks, width)}</div></div></div>'
    yield f'<div class="strip x"><span class="name">{units[1]}</span>'
    yield f'<div class="scale">{_positioned(below, width)}</div></div>'


def _positioned(labels: Iterable[tuple[float, str]], width: int) -> str:
    """Return all labels. A label without room is hidden until there is room for it."""
    parts, last = [], -1.0
    for at, text in labels:
        share = at / width
        is_hidden = share >= 1 or share - last < APART
        last = last if is_hidden else share
        named = attributes(data_at=f"{at:g}", style=f"left:{100 * share:.2f}%", hidden=is_hidden)
        parts.append(f"<span{named}>{text}</span>")
    return "".join(parts)
