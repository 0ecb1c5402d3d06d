"""The diagram of docs/how-it-works.md: the way of one tool result, and the log below it."""

from __future__ import annotations

from html import escape

from tests.docs.tables import TOP

DIAGRAM = TOP / "docs/how-it-works.svg"
# The page has this text as the picture's alternative text, because a page that shows an image hides what is in it.
ALTERNATIVE = (
    "The agent sends a command to the tool. The tool gives its output to readcache. readcache compares the output with "
    "its log of what the model was shown, and sends the lines or a marker to the model. The model's next call goes to "
    "the agent. The log also learns of compactions from the agent."
)
WIDTH, HEIGHT = 760, 300  # pixels
BOX, TALL, ROW, BELOW = 128, 64, 74, 208  # a box's width and height; the tops of the upper row and of the log
LEFT = {"agent": 20, "tool": 220, "readcache": 420, "model": 612}
LOG = LEFT["readcache"]
BOXES = {
    "agent": "runs the tool calls",
    "tool": "bash, read, search",
    "readcache": "compares lines",
    "model": "sees the reply",
}
# On a ground of its own, so that the page around it may be light or dark.
STYLE = """\
    text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #d5dbe3; text-anchor: middle; }
    .name { font-size: 15px; font-weight: bold; }
    .note { fill: #a5b1c0; }
    .box { fill: #21262d; stroke: #57606a; }
    .own { fill: #12341f; stroke: #3fb950; }
    path { stroke: #a5b1c0; fill: none; marker-end: url(#tip); }"""


def diagram() -> str:
    """Return the SVG."""
    rows = [_box(LEFT[name], ROW, name, note) for name, note in BOXES.items()]
    rows.append(_box(LOG, BELOW, "log", "the replies so far"))
    middle, half = ROW + TALL // 2, BOX // 2
    for (start, end), words in zip(
        (("agent", "tool"), ("tool", "readcache"), ("readcache", "model")), ("command", "output", "reply"), strict=True
    ):
        rows.append(_arrow(f"M{LEFT[start] + BOX} {middle} H{LEFT[end] - 8}"))
        rows.append(_text("note", (LEFT[start] + BOX + LEFT[end]) // 2, middle - 10, words))
    top, agent, model = ROW - 32, LEFT["agent"] + half, LEFT["model"] + half
    rows.append(_arrow(f"M{model} {ROW} V{top} H{agent} V{ROW - 8}"))
    rows.append(_text("note", (agent + model) // 2, top - 8, "the next tool call"))
    down, up = LOG + half - 16, LOG + half + 16
    rows.append(_arrow(f"M{down} {ROW + TALL} V{BELOW - 8}"))
    rows.append(_arrow(f"M{up} {BELOW} V{ROW + TALL + 8}"))
    rows.append(_text("note", LOG - 14, 182, "reply to record"))
    rows.append(_text("note", LOG + BOX + 14, 182, "visible lines"))
    rows.append(_arrow(f"M{agent} {ROW + TALL} V{BELOW + TALL // 2} H{LOG - 8}"))
    rows.append(_text("note", (agent + LOG) // 2, BELOW + TALL // 2 - 10, "compactions, rewinds, edits"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
        'aria-labelledby="title what">\n'
        f'  <title id="title">How readcache answers a tool call</title>\n  <desc id="what">{ALTERNATIVE}</desc>\n'
        f"  <style>\n{STYLE}\n  </style>\n"
        '  <defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<polygon points="0,0 8,4 0,8" fill="#a5b1c0"/></marker></defs>\n'
        f'  <rect x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="10" fill="#161b22" stroke="#57606a"/>\n'
        + "".join(f"  {row}\n" for row in rows)
        + "</svg>\n"
    )


def _box(x: int, y: int, name: str, note: str) -> str:
    kind, middle = "own" if name in ("readcache", "log") else "box", x + BOX // 2
    rect = f'<rect class="{kind}" x="{x}" y="{y}" width="{BOX}" height="{TALL}" rx="8"/>'
    return f"{rect}\n  {_text('name', middle, y + 27, name)}\n  {_text('note', middle, y + 48, note)}"


def _text(kind: str, x: int, y: int, words: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(words)}</text>'


def _arrow(way: str) -> str:
    return f'<path d="{way}"/>'
