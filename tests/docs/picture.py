"""The picture of the README: a read, and the marker in the place of the next one, from a real session."""

from __future__ import annotations

import tempfile
from html import escape
from pathlib import Path

from readcache import Omitted, Session
from readcache.cli.demo import COMMANDS, SESSION_ID, write_sample
from readcache.core.model.text import split_lines
from tests.docs.tables import TOP

PICTURE = TOP / "docs/marker.svg"
LINE, TOP_MARGIN, SIDE, CHAR = 20, 52, 34, 7.85  # pixels; CHAR of a wide monospaced font
HEAD, AROUND = 4, 3  # lines of the read that are drawn: its first ones, and at each end of what is left out later
WIDTH = 760
# On a ground of its own, so that the page around it may be light or dark.
STYLE = """\
    text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; fill: #d5dbe3; }
    .prompt { fill: #7ee2a8; font-weight: bold; }
    .marker { fill: #ffd479; font-weight: bold; }
    .note { font-family: system-ui, -apple-system, "Segoe UI", sans-serif; fill: #a5b1c0; }"""


def picture() -> str:
    """The SVG."""
    with tempfile.TemporaryDirectory() as directory, Session(directory, session_id=SESSION_ID) as session:
        write_sample(Path(directory))
        first, second = (session.run(command) for command in COMMANDS[:2])
    (omitted,) = second.segments
    assert isinstance(omitted, Omitted)
    shown, start, end = split_lines(first.text), omitted.start, omitted.end
    near = [*range(1, HEAD + 1), *range(start, start + AROUND), *range(end - AROUND + 1, end + 1)]
    rows = [_text("prompt", f"$ {COMMANDS[0]}")]
    for number, before in zip(near, [0, *near], strict=False):
        if number > before + 1:
            rows.append(_text("note", f"⋮ {number - before - 1} more lines", is_seen=before >= start))
        rows.append(_text("", shown[number - 1], is_seen=start <= number <= end))
    rows += [_text("note", f"⋮ {len(shown) - end} more lines"), ""]
    rows += [_text("prompt", f"$ {COMMANDS[1]}"), _text("marker", second.text.rstrip("\n"))]
    note = f"{end - start + 1} lines that the agent can still see (the green bar) are not sent again"
    rows.append(_text("note", f"{note}: {second.tokens_saved} tokens saved"))
    height = TOP_MARGIN + LINE * len(rows)
    body = "".join(row.format(y=TOP_MARGIN + LINE * at, top=TOP_MARGIN + LINE * at - 15) for at, row in enumerate(rows))
    title = "Two commands and what the agent receives: a whole file, then one marker instead of its lines 8 to 29"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">\n'
        f"  <title>{title}</title>\n  <style>\n{STYLE}\n  </style>\n"
        f'  <rect width="{WIDTH}" height="{height}" rx="10" fill="#161b22" stroke="#57606a"/>\n'
        f'  <text class="note" x="{SIDE - 14}" y="26">what the agent is sent</text>\n{body}</svg>\n'
    )


def _text(kind: str, text: str, *, is_seen: bool = False) -> str:
    """A row, with places for its height. `is_seen`: with the green bar."""
    assert SIDE + CHAR * len(text) < WIDTH, f"too long for the picture: {text}"
    bar = f'  <rect x="{SIDE - 14}" y="{{top}}" width="4" height="{LINE}" fill="#3fb950"/>\n' if is_seen else ""
    words = escape(text, quote=False).replace("{", "{{").replace("}", "}}")
    return f'{bar}  <text class="{kind}" x="{SIDE}" y="{{y}}" xml:space="preserve">{words}</text>\n'
